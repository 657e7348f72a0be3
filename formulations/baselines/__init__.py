"""The heuristics that trainers ship, on the same Instance, for comparison with our plans."""
