"""Patterns: what one rank can hold. They give bounds and plans where few large shards fill a
rank."""
