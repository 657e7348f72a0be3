"""Small models and clusters for the tests of this folder."""

from typing import Any

import numpy as np

from milp_planner.inputs import Cluster, Model
from milp_planner.pricing import Options, price
from milp_planner.pricing.entries import SHARD_NAMES


def model(*tables: dict[str, Any], **workload: Any) -> Model:
    """A model of the given tables, by default 1,000 rows of 64 floats each."""
    full = [{"name": f"t{i}", "rows": 1000, "dim": 64, **t} for i, t in enumerate(tables)]
    return Model.from_dict(
        {"name": "m", "workload": {"batch_per_rank": 512, **workload}, "tables": full}
    )


def cluster(machines: int = 1, ranks: int = 8, **fields: Any) -> Cluster:
    """Equal machines with 400 GB/s inside and 50 GB/s per rank between them."""
    data = {
        "name": "c",
        "machines": machines,
        "ranks_per_machine": ranks,
        "hbm": "80GiB",
        "ddr": "1TB",
        "profile": "torchrec-default",
        "interconnect": {"intra_machine": "400GB/s", "inter_machine": "50GB/s"},
        "reservations": {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0},
    }
    return Cluster.from_dict({**data, **fields})


def uneven_cluster(**fields: Any) -> Cluster:
    """One machine of four ranks and one of two."""
    machines = [{"ddr": "1TB", "ranks": n, "hbm": "80GiB"} for n in (4, 2)]
    return Cluster.from_dict({**cluster(2).to_dict(), "machines": machines, **fields})


def priced(*tables: dict[str, Any], machines: int = 1, ranks: int = 8, **workload: Any) -> Options:
    """Options of the given tables on an equal cluster."""
    return price(model(*tables, **workload), cluster(machines, ranks))


def entry(options: Options, name: str, table: int = 0) -> int:
    """The first shard entry of an option by name."""
    return int(options.entries.first[options.index(table, name)])


def cost(options: Options, name: str, table: int = 0) -> np.ndarray:
    """Picoseconds of that entry's phases."""
    return options.entries.cost[entry(options, name, table)]


def held(options: Options, name: str, table: int = 0) -> dict[str, int]:
    """What that entry takes: its ledger, and its bytes of DDR and SSD."""
    at, e = entry(options, name, table), options.entries
    ledger = dict(zip(SHARD_NAMES, e.ledger[at].tolist(), strict=True))
    return ledger | {"ddr": int(e.ddr[at]), "ssd": int(e.ssd[at])}


def column(value: int) -> np.ndarray:
    """One value as an array."""
    return np.array([value], dtype=np.int64)
