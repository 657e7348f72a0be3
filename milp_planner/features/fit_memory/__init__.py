"""Memory that a step needs outside the embeddings, fitted to measured peaks."""
