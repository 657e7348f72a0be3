"""Runs the unmodified CUDA source on a CPU: one fiber a thread, real barriers, either order."""
