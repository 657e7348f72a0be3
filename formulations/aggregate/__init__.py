"""The placement problem with places pooled: small models whose optimum never exceeds the truth."""
