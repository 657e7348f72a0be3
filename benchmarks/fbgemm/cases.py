"""The lookups and updates that run.py times: what FBGEMM's time depends on, one thing at a time."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from milp_planner.features.calibrate.steps import StepTable

GIB = 2**30
BYTES = {"fp32": 4, "fp16": 2}


@dataclass(frozen=True)
class Case:
    """One TBE and its batch."""

    group: str
    """What is varied."""
    tables: tuple[StepTable, ...]
    batch: int
    optimizer: str = "rowwise_adagrad"
    dtype: str = "fp32"
    memory: str = "hbm"
    """``hbm``, ``uvm`` (host memory that the GPU reads) or ``cached`` (the same behind a cache)."""
    cache: float = 0.0
    """Share of the rows that the cache of ``cached`` has room for."""
    weights: str = "none"
    """Weights of the ids: ``none``, ``given``, or ``trained`` (they get gradients)."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def table(
    dim: int, pooling: int, alpha: float = 0.0, size: float = GIB, width: int = 4
) -> StepTable:
    """A table of ``size`` bytes."""
    return StepTable(max(int(size) // (dim * width), 2), dim, pooling, alpha)


BASE = Case("", (table(128, 20),) * 4, 32_768)


def cases(small: bool = False) -> Iterator[Case]:
    """All cases; ``small``: the same with tables, batches and groups cut down, to try the code."""
    for case in (*_widths(), *_optimizers(), *_loads(), *_skews(), *_weighted(), *_ab(), *_host()):
        yield _shrunk(case) if small else case


def _widths() -> Iterator[Case]:
    for dtype, width in BYTES.items():
        for dim in (8, 16, 32, 64, 128, 256, 512):
            tables = (table(dim, 20, width=width),) * 4
            yield replace(BASE, group="width", tables=tables, dtype=dtype)


def _optimizers() -> Iterator[Case]:
    for optimizer in ("sgd", "adagrad", "rowwise_adagrad", "adam"):
        for dim in (32, 128, 256):
            for alpha in (0.0, 1.05):
                for batch, pooling in ((65_536, 1), (32_768, 20)):
                    tables = (table(dim, pooling, alpha),) * 4
                    yield Case("optimizer", tables, batch, optimizer)


def _loads() -> Iterator[Case]:
    for batch in (16, 256, 1024, 4096, 16_384, 65_536, 131_072):
        for optimizer in ("adagrad", "rowwise_adagrad"):
            yield Case("batch", (table(128, 10),) * 4, batch, optimizer)
    for pooling in (1, 2, 5, 10, 50, 100):
        yield replace(BASE, group="pooling", tables=(table(128, pooling),) * 4,
                      batch=655_360 // pooling)  # fmt: skip
    for number in (1, 4, 16, 64, 256):
        tables = (StepTable(100_000, 64, 20, 0.0),) * number
        yield replace(BASE, group="tables", tables=tables, batch=262_144 // number)


def _skews() -> Iterator[Case]:
    for alpha in (0.6, 0.9, 1.05, 1.2, 1.4):
        yield replace(BASE, group="skew", tables=(table(128, 20, alpha),) * 4)
    for rows in (1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000):
        yield replace(BASE, group="rows", tables=(StepTable(rows, 128, 20, 0.0),) * 4)


PUBLISHED = Case(
    "weights", (StepTable(100_000, 256, 30, 0.0),) * 10, 8 * 32_768, "sgd", weights="trained"
)
"""Ten of TorchRec's 80 weighted tables (PRs 4703, 4749), one GPU's of eight, with all GPUs' ids."""


def _weighted() -> Iterator[Case]:
    for weights in ("none", "given", "trained"):
        yield replace(PUBLISHED, batch=32_768, weights=weights)
        yield replace(BASE, group="weights", optimizer="sgd", weights=weights)


def _host() -> Iterator[Case]:
    for dim in (32, 64, 128, 256, 512):
        yield Case("uvm", (table(dim, 10, size=2 * GIB),), 16_384, memory="uvm")
    for batch in (64, 1024, 65_536):
        yield Case("uvm", (table(128, 10, size=2 * GIB),), batch, memory="uvm")
    for optimizer in ("sgd", "adagrad", "adam"):
        yield Case("uvm", (table(128, 10, size=GIB),), 16_384, optimizer, memory="uvm")
    for alpha in (0.0, 0.9, 1.05, 1.2):
        for share in (0.05, 0.2, 0.5):
            tables = (table(128, 10, alpha, size=2 * GIB),)
            yield Case("cached", tables, 16_384, memory="cached", cache=share)


def _ab() -> Iterator[Case]:
    """The busiest GPU's tables of the two published plans (benchmarks/publications)."""
    plans = {
        "round_robin": [(20_265, 6), (10, 1), (40_000_000, 100)],
        "auto": [(20_000_000, 13.5), (5_000_000, 12.5)],
    }
    for name, tables in plans.items():
        for batch in (55_296, 221_184):
            for alpha in (0.0, 1.05):
                shapes = tuple(StepTable(rows, 128, round(ids), alpha) for rows, ids in tables)
                yield Case(f"plan {name}", shapes, batch, "adagrad")


def _shrunk(case: Case) -> Case:
    tables = tuple(replace(t, rows=min(t.rows, 500)) for t in case.tables[:3])
    return replace(case, tables=tables, batch=min(case.batch, 32))
