"""TorchRec's memory-balanced partitioner on an Instance.

The rules are those of ``MemoryBalancedPartitioner`` (TorchRec 1.8.0,
``torchrec/distributed/planner/partitioners.py``): place by cost, then bisect the HBM a rank may use
for the least at which the rating is at most 2 % worse.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from formulations.baselines.partition.partitioner import Partition, Partitioner, SortBy
from formulations.errors import UnsupportedInstance
from formulations.instance import Instance, IntArray, Scope
from formulations.result.check import compute_loads

#: TorchRec's ``max_search_count`` and ``tolerance``, and the HBM below which it stops, bytes.
SEARCHES, TOLERANCE, CLOSE = 10, 0.02, 10 * 2**20


class BalancedPartitioner(Partitioner):
    """Place proposals so that HBM is even, at nearly the rating of the greedy partitioner.

    Raises
    ------
    UnsupportedInstance
        Where there is no resource ``hbm`` of ranks.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance, SortBy.PERF)
        hbm = [r.name == "hbm" and r.scope == Scope.RANK for r in instance.resources]
        if True not in hbm:
            raise UnsupportedInstance("memory_balanced needs a resource 'hbm' of every rank")
        self._hbm = hbm.index(True)

    def partition(self, options: IntArray, within: Instance | None = None) -> Partition | None:
        """Place one option a table; see :meth:`Partitioner.partition`."""
        best = super().partition(options, within)
        if best is None:
            return None
        rating = max(best.load)
        use = compute_loads(self.instance, best.placement(self.instance)).use[self._hbm]
        peak = int(self.facts.peak[options, self._hbm].max(initial=0))
        least, most = max(int(use.sum()) // self.instance.num_ranks, peak), int(use.max())
        for _ in range(SEARCHES):
            if least + CLOSE >= most:
                break
            middle = (most + least) // 2
            found = super().partition(options, self._with_hbm(middle))
            if found is None or max(found.load) > rating * (1 + TOLERANCE):
                least = middle
            else:
                best, most = found, middle
        return best

    def _with_hbm(self, amount: int) -> Instance:
        resources = list(self.instance.resources)
        hbm = resources[self._hbm]
        resources[self._hbm] = replace(hbm, capacity=np.full_like(hbm.capacity, amount))
        return replace(self.instance, resources=tuple(resources))
