"""Proofs: trees of multipliers from which a reader re-derives a bound (docs/proof.md)."""
