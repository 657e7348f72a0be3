"""Certificates: trees of multipliers from which a checker re-derives a bound (docs/proof.md)."""
