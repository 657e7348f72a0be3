"""The conductor: compiled search, neighbourhoods and the exact model, which share what they
find."""
