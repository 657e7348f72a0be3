"""Terminal drawings of info values, each at most 100 columns wide (rich renderables)."""
