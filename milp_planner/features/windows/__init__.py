"""A plan held against the loads of the windows of a run."""
