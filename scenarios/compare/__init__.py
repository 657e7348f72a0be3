"""Compare: several formulations on one Instance."""
