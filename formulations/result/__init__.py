"""Answers: the placement, its check, the Outcome, and the verification of its claims."""
