"""Audit of the plan in production."""
