"""A batch as values for terminal, JSON and HTML: summary, curves, every scenario."""
