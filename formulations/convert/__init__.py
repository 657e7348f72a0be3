"""Literature problems as Instances: multiple-choice knapsacks (MMKP) and assignment (GAP)."""

from formulations.convert.read import names_in, read_any

__all__ = ["names_in", "read_any"]
