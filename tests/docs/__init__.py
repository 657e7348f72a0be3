"""Generated pages and schemas agree with the code."""
