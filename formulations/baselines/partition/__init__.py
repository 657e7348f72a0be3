"""Greedy placement of chosen options on ranks, and the search over proposals that uses it."""
