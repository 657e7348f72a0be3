"""From measured peaks to what a step needs outside the embeddings."""
