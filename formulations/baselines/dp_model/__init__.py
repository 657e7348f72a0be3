"""The two-dimensional dynamic programme over memory bins, in both published variants."""
