"""Finding good plans for instances that are too large to solve whole."""
