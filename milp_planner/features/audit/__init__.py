"""Audit: the plan one runs today."""
