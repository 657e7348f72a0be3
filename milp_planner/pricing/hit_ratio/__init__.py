"""Which rows HBM holds under each mode and eviction rule, and so the hit ratio."""
