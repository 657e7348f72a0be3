"""The conductor: compiled search, neighbourhoods and the exact model, telling each other."""
