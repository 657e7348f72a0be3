"""TorchRec's default planner in two versions: whether the newer one plans otherwise.

    PYTHONHASHSEED=0 python benchmarks/torchrec-gap/versions.py run FOLDER [--random 100]
    python benchmarks/torchrec-gap/versions.py page [--check]

``run`` plans with the TorchRec that is installed, without our planner, and stores what its own
rating says of each plan in ``results/versions/VERSION.json`` (resumable):

- the instances of FOLDER, whose options and estimates are those of 1.8.0, so that only proposers,
  partitioner and rating are tried;
- the models of ``torchrec-dropin`` and the first models of the tests' generator, from enumeration
  to plan.

``page`` compares the two versions in docs/against-torchrec.md. Ties of 1.8.0 depend on
PYTHONHASHSEED.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import runpy
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from formulations import Instance, Where, read_instance

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).resolve().parent / "results" / "versions"
PAGE = ROOT / "docs" / "against-torchrec.md"
OLD, NEW = "1.8.0", "1.9.2"
KINDS = {
    "instance": "instances with the options and estimates of 1.8.0",
    "model": "models of [torchrec-dropin](../benchmarks/torchrec-dropin/README.md)",
    "random": "random models of the tests",
}
SAME = 1e-6
"""Relative difference of times that is rounding."""
HOSTS = ("table_row_wise", "table_column_wise")


def of_instance(path: Path) -> dict[str, Any]:
    """The planner's arguments for an instance: its options stand in for an enumeration."""
    from torch import nn
    from torchrec.distributed.planner import Topology
    from torchrec.distributed.planner.storage_reservations import (
        FixedPercentageStorageReservation,
    )

    instance = read_instance(path)
    hbm, ddr = (int(resource.capacity[0]) for resource in instance.resources)
    topology = Topology(
        world_size=instance.num_ranks, local_world_size=len(instance.machines[0]),
        compute_device="cuda", hbm_cap=hbm, ddr_cap=ddr,
    )  # fmt: skip
    return {
        "topology": topology, "enumerator": _Fixed(instance), "module": nn.Module(),
        "sharders": [], "storage_reservation": FixedPercentageStorageReservation(0.0),
    }  # fmt: skip


class _Fixed:
    """An enumerator that offers an instance's options."""

    def __init__(self, instance: Instance) -> None:
        tables = range(instance.num_tables)
        self._options = [_option(instance, t, o) for t in tables for o in instance.options_of(t)]

    def enumerate(self, module: Any, sharders: Any) -> list[Any]:
        return self._options


def _option(instance: Instance, table: int, option: int) -> Any:
    import torch
    from torch import nn
    from torchrec.distributed.planner.types import Perf, Shard, ShardingOption, Storage

    sharding, kernel = instance.option_names[option].split("/")
    blocks = [instance.block(block) for block in instance.blocks_of(option)]
    entries = [
        block.entries[0 if block.shared else i]
        for block in blocks
        for i in range(
            instance.num_ranks if block.where == Where.EVERY_RANK else len(block.entries)
        )
    ]
    uniform = blocks[0].where == Where.EVERY_RANK
    shards = [
        Shard(
            [1, 4], [at, 0],
            Storage(*(int(use) for use in instance.shard_use[entry])),
            Perf(*(int(cost) / 1e9 for cost in instance.shard_cost[entry])),
        )
        for at, entry in enumerate(entries)
    ]  # fmt: skip
    return ShardingOption(
        name=instance.table_names[table], tensor=torch.empty(len(shards), 4, device="meta"),
        module=("ebc", nn.Module()), input_lengths=[1.0], batch_size=1, sharding_type=sharding,
        partition_by="uniform" if uniform else "host" if sharding in HOSTS else "device",
        compute_kernel=kernel, shards=shards, is_pooled=True,
    )  # fmt: skip


def of_model(case: tuple[Any, ...]) -> dict[str, Any]:
    """The planner's arguments for a model of ``torchrec-dropin``."""
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.planner import Topology
    from torchrec.distributed.planner.storage_reservations import (
        FixedPercentageStorageReservation,
    )

    tables, ranks, seed, tight, host = case
    module, constraints, size = _dropin()["model"](tables, seed)
    topology = Topology(
        world_size=ranks, local_world_size=8, compute_device="cuda",
        hbm_cap=80 * 2**30 if tight is None else int(size / tight / ranks),
        ddr_cap=int(187.5 * 2**30) if host is None else int(size * host / ranks),
    )  # fmt: skip
    return {
        "topology": topology, "batch_size": 1024, "module": module, "constraints": constraints,
        "storage_reservation": FixedPercentageStorageReservation(0.15),
        "sharders": [EmbeddingBagCollectionSharder()],
    }  # fmt: skip


def _dropin() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "torchrec-dropin" / "run.py"))


def of_random(seed: int) -> dict[str, Any]:
    """The planner's arguments for a model of the tests' generator."""
    from tests.milp_planner.integrations.torchrec.models import random_case

    case = random_case(seed)
    return {
        "topology": case.topology, "batch_size": case.batch_size, "module": case.module,
        "constraints": case.constraints, "storage_reservation": case.reservation,
        "sharders": case.sharders,
    }  # fmt: skip


def planned(case: dict[str, Any]) -> dict[str, Any]:
    """What TorchRec's default planner finds: its rating in ms and a hash of every shard's place."""
    from torchrec.distributed.planner import EmbeddingShardingPlanner
    from torchrec.distributed.planner.perf_models import NoopPerfModel
    from torchrec.distributed.planner.types import PlannerError

    module, sharders = case.pop("module"), case.pop("sharders")
    planner = EmbeddingShardingPlanner(**case, stats=[])
    try:
        planner.plan(module, sharders)
    except PlannerError as error:
        return {"error": error.error_type.value}
    best = planner._best_plan
    assert best is not None
    shards = sorted(
        [o.path, o.name, o.sharding_type, o.compute_kernel, [[s.rank, *s.size] for s in o.shards]]
        for o in best
    )
    plan = hashlib.sha256(json.dumps(shards).encode()).hexdigest()[:16]
    return {"ms": NoopPerfModel(case["topology"]).rate(best), "plan": plan}


def run(folder: Path, random: int) -> None:
    """Plan what is not stored yet."""
    cases: dict[str, Callable[[], dict[str, Any]]] = {}
    for path in sorted(folder.glob("torchrec_*.json.gz")):
        name = path.name.removeprefix("torchrec_").removesuffix(".json.gz")
        cases[f"instance {name}"] = partial(of_instance, path)
    for case in _dropin()["CASES"]:
        cases[f"model {case}"] = partial(of_model, case)
    for seed in range(random):
        cases[f"random {seed}"] = partial(of_random, seed)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{version('torchrec')}.json"
    rows = json.loads(path.read_text()) if path.exists() else {}
    for name, make in cases.items():
        if name not in rows:
            rows[name] = planned(make())
            print(name, rows[name], flush=True)
            path.write_text(json.dumps(rows, indent=1) + "\n")


def lines() -> Iterator[str]:
    """The page's list: how often, and by how much, the versions differ."""
    before, after = (
        json.loads((RESULTS / f"{version}.json").read_text()) for version in (OLD, NEW)
    )  # fmt: skip
    for kind, words in KINDS.items():
        pairs = [(b, after[n]) for n, b in before.items() if n.split()[0] == kind and n in after]
        other = [(a, b) for a, b in pairs if a.get("plan") != b.get("plan") or a.keys() != b.keys()]
        ratios = [b["ms"] / a["ms"] for a, b in other if "ms" in a and "ms" in b]
        apart = sorted(ratio for ratio in ratios if abs(ratio - 1) > SAME)
        none = sum("ms" not in a and "ms" not in b for a, b in pairs)
        told = ""
        if apart:
            told = f", {len(apart)} of them at up to {apart[-1]:.3g} times the time"
        yield (
            f"- {len(pairs)} {words}: {len(other)} with another plan{told}; for "
            f"{none} neither version finds one."
        )


def main() -> int:
    """Plan and store, or compare on the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    parser.add_argument("--random", type=int, default=100)
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    asked = parser.parse_args()
    if asked.what == "run":
        run(asked.folder, asked.random)
        return 0
    return update(PAGE, {"versions": "\n".join(lines())}, check=asked.check)


if __name__ == "__main__":
    raise SystemExit(main())
