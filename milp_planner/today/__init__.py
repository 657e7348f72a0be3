"""The plan you run today: read from wherever it is, and put on our Instance of it."""
