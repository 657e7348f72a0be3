"""Runtimes, each a room: what its tables can do, hold, cost, and are called in an export."""
