"""What an answer is: the placement, its check, the Outcome, and what of it can be proved."""
