"""Published times and the conditions they were taken under, as models that pricing can price."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_planner.features.calibrate.sweep import Sweep, SweepPoint
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.access import Zipf
from milp_planner.pricing import price
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios
from milp_planner.pricing.units import FloatArray

ALPHA = 1.05
A10_ROWS, A10_RATIOS = 4_000_000, np.arange(1, 10) / 10
A10_IDS = 24_890
"""Not published; this many take the measured 0.80 ms in HBM at the profile's bandwidth."""
H100_TABLES, H100_IDS = 10, 104_858
"""1,048,576 ids in all, to within four."""
HYBRID_RATIO = 0.1
_DIM = 128
_ZIPF = {"kind": "zipf", "alpha": ALPHA}


@dataclass(frozen=True)
class Point:
    """One published time and its price; ``low`` and ``high`` differ where it stands for several
    ratios."""

    name: str
    conditions: str
    measured: float
    """Milliseconds, as the prices."""
    low: float
    high: float

    @property
    def error(self) -> float:
        """Relative error of the price that is furthest off."""
        return max((p / self.measured - 1 for p in (self.low, self.high)), key=abs)


def zipf_hits(mode: str, rows: int, ratios: FloatArray) -> FloatArray:
    """Hit ratios of Zipf 1.05, whose batches are small against the tier."""
    policy = CachePolicy("HYBRID" if mode == "HYBRID" else "CACHING", False, float(A10_IDS))
    return hit_ratios(Zipf(kind="zipf", alpha=ALPHA), rows, ratios, policy).values


def gpu(profile: str) -> Cluster:
    """One GPU with room for everything."""
    return Cluster.from_dict({
        "name": profile, "machines": 1, "ranks_per_machine": 1, "hbm": "1TB", "ddr": "4TB",
        "profile": profile,
        "reservations": {"hbm_percent": 0, "kjt_multiple": 0},
    })  # fmt: skip


def milliseconds(profile: str, model: Model, option: str) -> float:
    """Forward and backward of all tables, each in the option of that name."""
    options = price(model, gpu(profile))
    cost = options.entries.cost[options.entries.first[:-1]].sum(axis=1)
    return float(sum(cost[options.index(t, option)] for t in range(len(model.tables)))) / 1e9


def model_of(rows: int, ids: int, optimizer: str, access: Any, tables: int = 1) -> Model:
    """Equal dynamicemb tables of 128 floats, one id a sample, embeddings not pooled."""
    table = {"rows": rows, "dim": _DIM, "kind": "dynamicemb", "output": "sequence",
             "optimizer": optimizer, "access": access}  # fmt: skip
    return Model.from_dict({
        "name": "published", "workload": {"batch_per_rank": ids},
        "tables": [{"name": f"t{i}", **table} for i in range(tables)],
    })  # fmt: skip


def priced_points(sweeps: dict[str, Sweep], four_fifths: float) -> list[Point]:
    """Every time of the sweeps; ``four_fifths`` is the hit ratio at 0.8 of the distinct rows."""
    found = [_a10(point) for point in sweeps["a10"].points]
    for name, optimizer in (("h100", "adam"), ("h100-sgd", "sgd")):
        found += [_h100(point, optimizer, four_fifths) for point in sweeps[name].points]
    return found


def _a10(point: SweepPoint) -> Point:
    model = model_of(A10_ROWS, A10_IDS, "adam", _ZIPF)
    options, said = [_option(point.mode, 1.0)], "number of ids unknown"
    if point.mode in ("CACHING", "HYBRID"):
        options = [_option(point.mode, ratio) for ratio in A10_RATIOS.tolist()]
        said = "one time for all ratios below 1: priced at 0.1 to 0.9"
    times = [milliseconds("a10", model, option) for option in options]
    return Point(f"A10, Adam, {point.mode}", said, point.ms, min(times), max(times))


def _h100(point: SweepPoint, optimizer: str, four_fifths: float) -> Point:
    access, ratio = {"kind": "unknown"}, HYBRID_RATIO
    name, said = point.mode, ""
    if point.mode == "CACHING":
        hit = 1.0 if point.x == 1 else four_fifths
        access = {"kind": "miss_rate", "points": [[0.1, 1 - hit]]}
        name = f"CACHING, {point.x:g} of the batch's distinct rows"
        said = "every lookup hits" if hit == 1 else f"hit ratio unknown; {hit:g} fits both rows"
    if point.mode == "HYBRID":
        access, name = _ZIPF, "HYBRID, 10% in HBM"
        said = "access unknown; Zipf 1.05 over 4M rows a table assumed"
    model = model_of(A10_ROWS, H100_IDS, optimizer, access, H100_TABLES)
    ms = milliseconds("h100", model, _option(point.mode, ratio))
    label = {"adam": "Adam", "sgd": "SGD"}[optimizer]
    return Point(f"H100, {label}, {name}", said, point.ms, ms, ms)


def _option(mode: str, ratio: float) -> str:
    inside = f"/{ratio:g}" if mode in ("CACHING", "HYBRID") else ""
    return f"row_wise/{mode}{inside}/roundrobin"
