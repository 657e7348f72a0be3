"""The single linear model of the placement problem, written once for any partition of the ranks."""
