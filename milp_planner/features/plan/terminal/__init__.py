"""Terminal drawings of a plan (rich renderables, at most 100 columns wide)."""
