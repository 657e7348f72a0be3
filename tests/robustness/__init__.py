"""How the spine stands damage: broken files, kills, limits, interruptions."""
