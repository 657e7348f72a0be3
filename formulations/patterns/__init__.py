"""Patterns: what one rank can hold. They bound and place where few large shards fill a rank."""
