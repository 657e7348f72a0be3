"""Who owns an embedding key: routing rules, balance, bucketize and checkpoints."""
