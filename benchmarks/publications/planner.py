"""The planner of NVIDIA's MLPerf DLRM-DCNv2 submissions, to recompute the plans of published runs.

A place is a GPU, or a node whose GPUs share the rows of every table on it (``hier_auto``). It costs
Σ hotness / parts + (bandwidth ratio / work ratio) · shards: no widths, no batch, no latency. Small
tables are replicated. A round places the shards, the hottest first, each where it is cheapest; then
the table with the hottest shard gets twice the parts. The round with the least highest cost wins.

References
----------
mlcommons/training_results_v5.1 441d65f4,
``NVIDIA/benchmarks/dlrm_dcnv2/implementations/hugectr/sharding/{planner,generate_plan}.py``. Ties
there depend on numpy's argsort; here the lowest index comes first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

ROUNDS = 20
WORK_RATIO = 4
ROW_GB = 128 * 8 / 1e9
"""128 columns of weight and accumulator, in GB."""


class Setting(NamedTuple):
    """Arguments of one run of the planner."""

    places: int
    """GPUs, or nodes."""
    ratio: float
    """Cost of an exchanged vector over that of a read one, before the work ratio."""
    threshold: float
    """Tables below this many GB are replicated."""
    gpus_a_place: int = 1


@dataclass(frozen=True)
class Sharding:
    """Where the tables are."""

    replicated: tuple[int, ...]
    """Tables on every GPU."""
    places: tuple[tuple[int, ...], ...]
    """Places of the parts of every table; none for replicated ones."""

    def shards(self, gpus_a_place: int = 1) -> int:
        """Shards of all GPUs together."""
        return gpus_a_place * sum(map(len, self.places))

    def hottest(self, hotness: Sequence[float], places: int) -> float:
        """Ids a sample at the busiest place."""
        return max(self.loads(hotness, places))

    def loads(self, hotness: Sequence[float], places: int) -> list[float]:
        """Ids a sample at every place."""
        found = [0.0] * places
        for heat, there in zip(hotness, self.places, strict=True):
            for place in there:
                found[place] += heat / len(there)
        return found


def round_robin(tables: int, places: int) -> Sharding:
    """Table t whole on GPU t mod places; nothing replicated."""
    return Sharding((), tuple((table % places,) for table in range(tables)))


def auto(
    rows: Sequence[int], hotness: Sequence[float], setting: Setting, cap_gb: float = 60.0
) -> Sharding:
    """The plan of ``auto``, or of ``hier_auto`` where a place has several GPUs.

    Raises
    ------
    ValueError
        If no round fits the cap.
    """
    small = [table for table, n in enumerate(rows) if n * ROW_GB < setting.threshold]
    large = [table for table in range(len(rows)) if table not in small]
    parts = dict.fromkeys(large, 1)
    spread = dict.fromkeys(large, setting.places)
    cap = cap_gb * setting.gpus_a_place
    best: tuple[float, dict[int, list[int]]] | None = None
    for tried in (*_rounds(parts, hotness, setting.places), spread):
        placed = _place(tried, rows, hotness, setting, cap)
        if placed is not None and (best is None or placed[0] < best[0]):
            best = placed
    if best is None:
        raise ValueError("no round fits the cap")
    found = best[1]
    return Sharding(
        tuple(small), tuple(tuple(sorted(found.get(table, []))) for table in range(len(rows)))
    )


def _rounds(parts: dict[int, int], hotness: Sequence[float], places: int) -> list[dict[int, int]]:
    """Parts of every table in each round."""
    found = []
    for _ in range(ROUNDS):
        found.append(dict(parts))
        able = [table for table in parts if 2 * parts[table] <= places]
        if not able:
            break
        hottest = max(parts, key=lambda table: (hotness[table] / parts[table], -table))
        if hottest not in able:
            break
        parts = {**parts, hottest: 2 * parts[hottest]}
    return found


def _place(
    parts: dict[int, int], rows: Sequence[int], hotness: Sequence[float], setting: Setting,
    cap: float,
) -> tuple[float, dict[int, list[int]]] | None:  # fmt: skip
    """The highest cost and the places of every table's parts; None if some part does not fit."""
    cost, used = [0.0] * setting.places, [0.0] * setting.places
    where: dict[int, list[int]] = {table: [] for table in parts}
    order = sorted(parts, key=lambda table: (-hotness[table] / parts[table], table))
    for table in order:
        size = rows[table] * ROW_GB / parts[table]
        for _ in range(parts[table]):
            free = [
                place for place in range(setting.places)
                if place not in where[table] and used[place] + size <= cap
            ]  # fmt: skip
            if not free:
                return None
            place = min(free, key=lambda each: cost[each])
            where[table].append(place)
            used[place] += size
            cost[place] += hotness[table] / parts[table] + setting.ratio / WORK_RATIO
    return max(cost), where
