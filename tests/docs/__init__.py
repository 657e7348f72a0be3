"""Generated pages and schemas are what the code says."""
