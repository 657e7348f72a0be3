"""Replay key streams through the tiers of tables, and through the routing of a whole plan."""
