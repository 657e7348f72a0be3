"""The page of one plan, in HTML and in the terminal."""
