"""The compiled loops of the search: they update loads in place, and try and undo moves.

Penalty: Σ over ranks and phases of max(0, cost − T_p)/T + c·Σ over places of
max(0, use/capacity − 1), where c is the capacity weight. T is the sum of T_p, which moves shift
between phases (``step_time`` has several, other objectives one). Sums are integers; only the
penalty is a float.

The functions that Python calls are imported here; ``compiled`` describes how loops are written.
"""

from formulations.search.kernels.annealing import put, sample, select
from formulations.search.kernels.evening import even
from formulations.search.kernels.tidying import tidy

__all__ = ["even", "put", "sample", "select", "tidy"]
