"""The formulations that prove: the exact model, its second opinion, and the search."""
