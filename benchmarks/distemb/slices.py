"""The three strategies of NVIDIA's distributed-embeddings, on an Instance.

Written from the documentation of ``DistributedEmbedding`` and the behaviour of
``DistEmbeddingStrategy`` (NVIDIA-Merlin/distributed-embeddings, dist_model_parallel.py at 05e1580):
tables stay whole or are cut into equal column slices, a power of two of them; slices are dealt to
ranks by number or by size alone. Ids, exchange and capacities are ignored. The bytes that a table
stores (its ``move_bytes``, else its use of the first resource) replace its number of elements.
"""

from enum import StrEnum

import numpy as np

from formulations.baselines.partition.proposals import Found, outcome_of
from formulations.clock import Clock
from formulations.fusion import without_fusion
from formulations.instance import Instance, IntArray, Scope
from formulations.instance.facts import bytes_to_move, own_cost, total_use
from formulations.result.check import check
from formulations.result.outcome import Outcome, StoppedBy, nothing, why_stopped
from formulations.result.placement import Placement
from formulations.settings import OwnSettings, Settings, one_of, whole

NAME = "distemb"


class Strategy(StrEnum):
    """How slices are dealt to ranks."""

    BASIC = "basic"
    MEMORY_BALANCED = "memory_balanced"
    MEMORY_OPTIMIZED = "memory_optimized"


OPTIONS = {"strategy": one_of(Strategy), "slice_above": whole(1)}


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Cut tables into slices and deal these to ranks; the plan, or a note of what it breaks.

    Options: ``strategy``, default ``memory_balanced`` as in the library's benchmarks;
    ``slice_above``, bytes above which tables are cut (default: only as long as there are fewer
    slices than ranks).
    """
    own = OwnSettings(NAME, settings.options, OPTIONS)
    strategy = Strategy(own.choice("strategy", Strategy.MEMORY_BALANCED))
    if clock.over():
        return nothing(NAME, why_stopped(clock))
    options = _sliced_options(instance)
    bare = next((t for t, found in enumerate(options) if 1 not in found), None)
    if bare is not None:
        what = f"table {instance.table_names[bare]!r} has no option that leaves it whole"
        return nothing(NAME, StoppedBy.EXHAUSTED, f"{what}, on any rank, in that rank's memory")
    sizes = _stored(instance)[[found[1] for found in options]].tolist()
    most = own.integer("slice_above", 0) if own.has("slice_above") else _automatic(sizes, instance)
    cuts = [_cut(size, most, found) for size, found in zip(sizes, options, strict=True)]
    slices = [(size // n, t) for t, (size, n) in enumerate(zip(sizes, cuts, strict=True))
              for _ in range(n)]  # fmt: skip
    ranks: list[list[int]] = [[] for _ in cuts]
    for rank, dealt in enumerate(deal(slices, instance.num_ranks, strategy)):
        for table in dealt:
            ranks[table].append(rank)
    chosen = np.asarray([o[n] for o, n in zip(options, cuts, strict=True)], dtype=np.int64)
    placement = Placement(chosen, [[np.asarray(each, dtype=np.int64)] for each in ranks])
    verdict = check(without_fusion(instance), placement)
    why = f"its plan breaks: {verdict.violations[0]}" if verdict.violations else ""
    rating = verdict.objectives.get(instance.objective.value)
    found = Found(placement if verdict.feasible else None, rating, proposed=1, placed=1)
    return outcome_of(instance, NAME, found, why, strategy=str(strategy), slices=len(slices))


def deal(slices: list[tuple[int, int]], ranks: int, strategy: Strategy) -> list[list[int]]:
    """Deal slices to ranks; returns the tables of every rank's slices.

    Parameters
    ----------
    slices : list of (int, int)
        Size and table of each, in the order of tables.
    ranks : int
    strategy : Strategy
        Round robin; the largest first, back and forth over the ranks, so that each gets equally
        many; or the largest first, each to the rank that stores least.
    """
    if strategy == Strategy.BASIC:
        return [[table for _, table in slices[rank::ranks]] for rank in range(ranks)]
    falling = sorted(slices, reverse=True)
    tables = [table for _, table in falling]
    if strategy == Strategy.MEMORY_BALANCED:
        turn = 2 * ranks
        return [tables[rank::turn] + tables[turn - 1 - rank :: turn] for rank in range(ranks)]
    held: list[tuple[int, list[int]]] = [(0, []) for _ in range(ranks)]
    for size, table in falling:
        least, mine = held[0]
        held = sorted([*held[1:], (least + size, [*mine, table])])
    return [mine for _, mine in held]


def _sliced_options(instance: Instance) -> list[dict[int, int]]:
    """For every table, the cheapest allowed option by number of slices, among options that may put
    slices on any rank and use only memory of ranks."""
    own = own_cost(instance)
    elsewhere = [i for i, r in enumerate(instance.resources) if r.scope != Scope.RANK]
    off = np.any(total_use(instance)[:, elsewhere] > 0, axis=1)
    single = np.diff(instance.option_blocks) == 1
    result: list[dict[int, int]] = []
    for table in range(instance.num_tables):
        found: dict[int, int] = {}
        for option in instance.options_of(table):
            block = int(instance.option_blocks[option])
            free = instance.free[block] and not instance.by_machine[block]
            if not free or not single[option] or instance.block_places[block] >= 0 or off[option]:
                continue
            count = int(instance.block_count[block])
            better = count not in found or own[option] < own[found[count]]
            if better and instance.allowed[option]:
                found[count] = option
        result.append(found)
    return result


def _stored(instance: Instance) -> IntArray:
    """Bytes that an option stores, int64 array [options]."""
    moved = bytes_to_move(instance)
    use = total_use(instance)
    return np.where(moved > 0, moved, use[:, 0] if use.shape[1] else 1)


def _automatic(sizes: list[int], instance: Instance) -> int:
    """The size above which to cut if there are fewer tables than ranks: the largest piece is halved
    until there are as many pieces as ranks."""
    most, pieces = max(sizes, default=0), sorted(sizes)
    while pieces and len(pieces) < instance.num_ranks and pieces[-1] > 1:
        most = pieces[-1] - 1
        half = pieces.pop() // 2
        pieces = sorted([*pieces, half, half])
    return most


def _cut(size: int, most: int, options: dict[int, int]) -> int:
    """The least power of two of slices that makes them small enough, or the next smaller number
    for which there is an option."""
    wanted = 1
    while wanted <= max(options) and size > most * wanted:
        wanted *= 2
    return max(count for count in options if count <= wanted)
