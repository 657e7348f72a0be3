"""A batch as values that terminal, JSON and HTML draw: summary, curves, every scenario."""
