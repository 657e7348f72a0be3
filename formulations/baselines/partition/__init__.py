"""Greedy placement of chosen options on ranks, and the search over proposals that uses it."""

from formulations.baselines.partition.partitioner import Partition, Partitioner, SortBy
from formulations.baselines.partition.proposals import Proposals, search

__all__ = ["Partition", "Partitioner", "Proposals", "SortBy", "search"]
