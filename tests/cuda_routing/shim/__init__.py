"""Runs the unmodified CUDA source on a CPU: one fiber per thread, real barriers, both thread
orders."""
