"""The heuristics that trainers ship, on the same Instance: what plans are compared with."""
