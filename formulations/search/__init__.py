"""The conductor: compiled search, programs and the exact model, which share what they find."""
