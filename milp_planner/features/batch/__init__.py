"""A batch as values that terminal, JSON and HTML draw: summary, curves, every scenario."""

from milp_planner.features.batch.info import BatchInfo, batch_of

__all__ = ["BatchInfo", "batch_of"]
