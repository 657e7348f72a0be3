"""The plan you run today: read from any of its formats, and placed on our Instance."""
