"""How the planner copes with damage: broken files, kills, limits, interruptions."""
