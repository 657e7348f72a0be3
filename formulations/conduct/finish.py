"""The finishing pass: as good a plan, with less in host memory, fewer shards and a lower total.

Table after table takes the best option, in that order of wishes, that costs the objective nothing
and breaks nothing; then tables return to where they are in production, where that is as good.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import numpy as np

from formulations.bounds.own import per_option, shard_counts
from formulations.conduct.anneal import Annealer
from formulations.instance import Instance, IntArray, Scope
from formulations.result.check import check
from formulations.result.placement import Placement

_LOOPS = "formulations.conduct.anneal_kernels"


def prepare() -> subprocess.Popen[bytes]:
    """Compile the loops in a process of their own: here it would hold up every Python thread.

    They are compiled once on a machine, then read from Numba's cache in a second.
    """
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", f"import {_LOOPS}"], env=path, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def ready(compiling: subprocess.Popen[bytes] | None = None, seconds: float = 0.0) -> bool:
    """Whether the compiled loops are there, after at most so many seconds of waiting for them.

    What the compiler has done by then is kept for the next solve.
    """
    if compiling is not None:
        try:
            compiling.wait(seconds)
        except subprocess.TimeoutExpired:
            compiling.terminate()
        if compiling.returncode == 0:
            import_module(_LOOPS)
    return hasattr(sys.modules.get(_LOOPS), "tidy")


def finished(
    instance: Instance, placement: Placement, annealer: Annealer | None = None
) -> Placement:
    """A plan of the same objective or a better one that a user would rather have.

    Parameters
    ----------
    instance : Instance
    placement : Placement
        Feasible.
    annealer : Annealer, optional
        One of the instance, to use again.
    """
    if not instance.num_tables:
        return placement
    before = check(instance, placement)
    assert before.loads is not None
    step = instance.objective.value == "step_time"
    value = before.objectives[instance.objective.value]
    target = before.loads.cost.max(axis=0).tolist() if step else [value]
    annealer = annealer or Annealer(instance)
    annealer.choose_from(instance.allowed)
    annealer.load(placement, target)
    annealer.tidy(wishes(instance))
    plan = annealer.placement()
    after = check(instance, plan)
    if not after.feasible or after.objectives[instance.objective.value] > value:
        return placement
    return plan


def wishes(instance: Instance) -> IntArray:
    """Rank of every option among its table's: use of machines' and the cluster's memory, shards,
    cost in total; int64 array [options], the least is the best."""
    counts = shard_counts(instance)
    host = [i for i, r in enumerate(instance.resources) if r.scope != Scope.RANK]
    room = [max(1, int(instance.resources[i].capacity.sum())) for i in host]
    use = per_option(instance, instance.shard_use[:, host] * counts[:, None]) / np.asarray(room)
    cost = per_option(instance, instance.shard_cost.sum(axis=1) * counts)
    shards = per_option(instance, counts)
    order = np.lexsort((cost, shards, use.sum(axis=1)))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    same = np.diff(np.stack([use.sum(axis=1), shards, cost], axis=1)[order], axis=0).any(axis=1)
    rank[order] = np.append(0, np.cumsum(same)) if len(order) else rank
    return rank
