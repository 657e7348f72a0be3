"""The compiled loops of the search: loads in place, moves tried and taken back.

Penalty: Σ over ranks and phases of max(0, cost − T_p)/T + c·Σ over places of
max(0, use/capacity − 1), c the capacity weight. T is the sum of T_p, and moves shift it between
the phases (one, but under ``step_time``). Sums are kept in integers; only the penalty is a float.

What Python calls is imported here; how loops are written, ``compiled`` says.
"""

from formulations.search.kernels.annealing import anneal, select, temper
from formulations.search.kernels.evening import even
from formulations.search.kernels.loads import BROKEN
from formulations.search.kernels.tidying import preference_sum, tidy

__all__ = ["BROKEN", "anneal", "even", "preference_sum", "select", "temper", "tidy"]
