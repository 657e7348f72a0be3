"""The HTML page of one plan."""
