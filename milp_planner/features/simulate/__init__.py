"""Replay key streams through the memory tiers of tables, and through a plan's routing."""
