"""Verify: what of a plan is derived again without a solver."""
