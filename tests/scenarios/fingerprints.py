"""Fingerprints of priced inputs: those of every shipped suite, and random ones of every runtime.

``python -m tests.scenarios.fingerprints`` writes ``fingerprints.json`` anew, after a byte or a
price was changed on purpose.
"""

import json
import random
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.pricing import Options, price
from scenarios import catalog
from scenarios.batch.scenario import expand
from scenarios.batch.suite import find_suite, suites

STORED = Path(__file__).with_name("fingerprints.json")
NANOSECOND = 1000
"""Prices are compared in whole nanoseconds, as processors differ in the last bit of a logarithm."""
DRAWS = 400


def suite_inputs() -> Iterator[tuple[str, Model, Cluster]]:
    """Every pair of a model and a cluster in the shipped suites, once; few of the literature's
    tasks, which differ in their tables alone."""
    seen = set()
    for suite in suites():
        few = 4 if suite.endswith("-tasks") else None
        for scenario in expand(*find_suite(suite))[:few]:
            model, cluster = scenario.inputs()
            key = model.fingerprint(), cluster.fingerprint()
            if key not in seen:
                seen.add(key)
                swept = " ".join(f"{axis}={value}" for axis, value in scenario.axes)
                yield (
                    f"{suite}: {scenario.model} {scenario.cluster} {swept}".strip(),
                    model,
                    cluster,
                )


def drawn_inputs(draws: int = DRAWS) -> Iterator[tuple[str, Model, Cluster]]:
    """Random models of every runtime on clusters of every kind, always the same ones."""
    sites = [catalog.find_cluster(name).to_dict() for name in SITES]
    sites.append(PROCESSORS)
    sites.append({**catalog.find_cluster("4x8xh100").to_dict(), "two_d": {
        "sharding_group_size": 16, "strategy": "fully_sharded", "sync_interval": 2,
        "layout": "contiguous",
    }})  # fmt: skip
    for site in sites:  # a stash needs activations that are there in the dense part alone
        site["reservations"] = {**site.get("reservations", {}), "activations": "1GiB"}
    for number in range(draws):
        draw = random.Random(number)
        cluster = Cluster.from_dict(draw.choice(sites))
        kind = draw.choice(["torchrec", "torchrec", "dynamicemb", "mixed", None])
        if kind is None:  # a runtime that is gone; the other draws stay what they were
            continue
        kind = "torchrec" if cluster.two_d else kind
        tables = [_table(draw, index, kind) for index in range(draw.randint(1, 4))]
        try:
            document = {"name": "m", "workload": _workload(draw, kind), "tables": tables}
            yield f"drawn {number}", Model.from_dict(document), cluster
        except BadInput:
            continue


PROCESSORS = {
    "name": "cpu", "machines": 2, "ranks_per_machine": 2, "hbm": 0, "ddr": "1TB", "profile": "a10",
    "interconnect": {"intra_machine": "100GB/s", "inter_machine": "10GB/s"},
}  # fmt: skip
SITES = ("8xh100-ssd", "1xa10", "2xgb200-nvl72", "mixed-h100", "16x8xa100")


def _table(draw: random.Random, index: int, kind: str) -> dict[str, Any]:
    own = draw.choice(["torchrec", "dynamicemb"]) if kind == "mixed" else kind
    table: dict[str, Any] = {
        "name": f"t{index}",
        "kind": own,
        "rows": draw.choice([7, 1000, 123_456, 10**8]),
        "dim": draw.choice([16, 64, 100, 256]),
        "dtype": draw.choice(["fp32", "fp32", "fp16", "int8"]),
        "optimizer": draw.choice(["adam", "sgd", "adagrad", *["rowwise_adagrad"] * 2]),
        "num_features": draw.randint(1, 3),
        "access": draw.choice(ACCESS),
    }
    if draw.random() < 0.4:
        table |= {"output": "sequence", "sequence_length": draw.choice([0.5, 80])}
    else:
        table["pooling_factor"] = draw.choice([1, 20.5])
    if own == "dynamicemb":
        table["dist_types"] = draw.choice([["roundrobin"], ["continuous", "hash_roundrobin"]])
        table["admission_capacity"] = draw.choice([None, 1000])
        table["external_storage"] = draw.choice([None, None, "redis"])
    if own == "torchrec" and draw.random() < 0.3:
        table["key_value"] = {"virtual": draw.random() < 0.5, "l2": "1GiB"}
    if draw.random() < 0.3:
        table["constraints"] = draw.choice(LIMITS)
    return table


ACCESS: list[Any] = [
    "unknown",
    {"kind": "zipf", "alpha": 1.1, "hot_ids": [5, 0]},
    {"kind": "top_ids", "ids": [{"share": 0.4, "id": 3}, {"share": 0.2}]},
    {"kind": "unknown", "measured_skew": {"max_over_mean": 2.0, "ranks": 8}},
]
LIMITS: list[Any] = [
    {"modes": ["HBM_ONLY", "SSD"]},
    {"sharding_types": ["column_wise", "table_row_wise", "grid_shard"]},
    {"pin": {"ranks": [0]}},
    {"ranks": [0, 1, 2, 3], "cache_ratios": ["1/5", "1/2"]},
    {"column_widths": [48], "stash": "always"},
]


def _workload(draw: random.Random, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "batch_per_rank": draw.choice([64, 4096]),
        "mode": draw.choice(["training", "training", "inference"]),
        "dedup": draw.random() < 0.5,
        "exchange_dtype": draw.choice(["fp32", "fp16"]),
        "codec": draw.choice(["stock", "low_memory"]),
        "prefetch_pipeline": draw.random() < 0.4,
        "buffers": draw.choice(["additive", "largest_collective"]),
        "fusion": draw.choice(["honoured", "free"]),
        "stash_window_ms": draw.choice([None, 5]),
    }
    return found | {
        "storage_model": draw.choice(["runtime", "runtime", "torcheasyrec"]),
        "cost_model": draw.choice(["law", "law", "torcheasyrec", "torcheasyrec_first"]),
    }


def fingerprint(model: Model, cluster: Cluster, unit: int = NANOSECOND) -> str:
    """Hashes of options, bytes and prices (in ``unit`` picoseconds), or of the refusal."""
    try:
        options = price(model, cluster)
    except BadInput as error:
        return f"refused {_hash(str(error))}"
    entries = options.entries
    named = (options.names, options.groups, options.collectives, sorted(options.refused.items()))
    which = (options.first, options.group, options.level, options.collective, entries.first)
    bytes_ = (entries.ledger, entries.ddr, entries.ssd, entries.move, entries.incoming)
    shards = (entries.repeat, entries.rows, entries.columns)
    prices = (entries.cost + unit // 2) // unit
    return " ".join((
        _hash(str(named), *which, *shards),
        _hash(*bytes_, entries.outgoing, entries.ssd_step),
        _hash(str(_places(options)), prices),
    ))  # fmt: skip


def _places(options: Options) -> list[Any]:
    """What the names of options do not say: where they may go."""
    choices, index = options.distinct
    return [(c.groups, c.members, c.machines, c.ranks, c.pinned) for c in choices] + index.tolist()


def _hash(*parts: str | np.ndarray) -> str:
    found = sha256()
    for part in parts:
        found.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part))
    return found.hexdigest()[:12]


def fingerprints(step: int = 1) -> dict[str, str]:
    """The fingerprint of every input, or of every so many, by name."""
    inputs = [*suite_inputs(), *drawn_inputs()][::step]
    return {name: fingerprint(model, cluster) for name, model, cluster in inputs}


if __name__ == "__main__":
    STORED.write_text(json.dumps(fingerprints(), indent=0) + "\n", encoding="utf-8")
