"""Check: every problem of a model and a cluster at once."""
