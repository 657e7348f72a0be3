"""TorchRec's default planner and MilpShardingPlanner on the same models, one after the other.

``python benchmarks/torchrec-dropin/run.py models`` plans synthetic models with both and stores one
JSON file per case under ``results/``; finished cases are not run again. ``… packing`` counts how
often TorchRec's planner fails on small feasible packing cases. ``… table`` puts what is
stored into docs/torchrec.md.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import random
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update

RESULTS = Path(__file__).resolve().parent / "results"
#: tables, ranks, seed, table bytes ÷ HBM of all ranks (None: 80 GiB a rank), DDR ÷ table bytes.
CASES = [
    (20, 8, 0, None, None),
    (20, 8, 0, 3.0, 1.5),
    (20, 8, 1, 2.0, 1.5),
    (50, 8, 0, None, None),
    (50, 8, 0, 1.5, 1.5),
    (50, 8, 0, 3.0, 1.5),
    (50, 16, 0, 2.0, 1.5),
    (50, 16, 1, 2.1, 0.75),
    (100, 16, 0, 1.5, 1.5),
]
LIMIT = 60.0


def model(tables: int, seed: int) -> tuple[Any, dict[str, Any], int]:
    """Log-uniform rows, mixed dims, pooling 1 to 50: module, constraints, bytes of all tables."""
    import torch
    from torchrec.distributed.planner.types import ParameterConstraints
    from torchrec.modules.embedding_configs import EmbeddingBagConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection

    draw = random.Random(seed)
    configs = [
        EmbeddingBagConfig(
            name=f"t{i}",
            num_embeddings=int(10 ** draw.uniform(4, 8)),
            embedding_dim=draw.choice([16, 32, 64, 128, 256]),
            feature_names=[f"f{i}"],
        )
        for i in range(tables)
    ]
    constraints = {
        c.name: ParameterConstraints(pooling_factors=[round(draw.uniform(1, 50), 1)])
        for c in configs
    }
    size = sum(c.num_embeddings * c.embedding_dim * 4 for c in configs)
    module = EmbeddingBagCollection(tables=configs, device=torch.device("meta"))
    return module, constraints, size


def run_case(case: tuple[Any, ...]) -> dict[str, Any]:
    """Both planners on one model; the enumeration, which they share, is timed apart."""
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
    from torchrec.distributed.planner.perf_models import NoopPerfModel
    from torchrec.distributed.planner.storage_reservations import (
        FixedPercentageStorageReservation,
    )
    from torchrec.distributed.planner.types import PlannerError

    from formulations import Settings
    from milp_planner.integrations.torchrec import MilpShardingPlanner, NoPlan

    tables, ranks, seed, tight, host = case
    module, constraints, size = model(tables, seed)
    topology = Topology(
        world_size=ranks,
        local_world_size=8,
        compute_device="cuda",
        hbm_cap=80 * 2**30 if tight is None else int(size / tight / ranks),
        ddr_cap=int(187.5 * 2**30) if host is None else int(size * host / ranks),
    )
    enumerator = EmbeddingEnumerator(topology, batch_size=1024, constraints=constraints)
    sharders = [EmbeddingBagCollectionSharder()]
    start = time.perf_counter()
    enumerator.enumerate(module, sharders)
    shared = {"seconds_enumerate": time.perf_counter() - start}
    common = {
        "topology": topology,
        "batch_size": 1024,
        "enumerator": enumerator,
        "storage_reservation": FixedPercentageStorageReservation(0.15),
        "constraints": constraints,
        "stats": [],
    }
    stock = EmbeddingShardingPlanner(**common, timeout_seconds=int(LIMIT))
    start = time.perf_counter()
    theirs: dict[str, Any] = {"ms": None}
    try:
        stock.plan(module, sharders)
        theirs["ms"] = NoopPerfModel(topology).rate(stock._best_plan)
    except PlannerError as error:
        theirs["error"] = error.error_type.value
    theirs["seconds"] = time.perf_counter() - start
    ours = MilpShardingPlanner(**common, settings=Settings(time_limit=LIMIT))
    start = time.perf_counter()
    mine: dict[str, Any] = {"ms": None}
    try:
        ours.plan(module, sharders)
        mine["ms"] = ours.rating
        assert ours.outcome is not None
        mine |= _outcome(ours.outcome, theirs["ms"])
    except NoPlan as error:
        assert error.outcome is not None
        mine |= {"status": error.outcome.status.value, "error": error.error_type.value}
    mine["seconds"] = time.perf_counter() - start
    return {"case": list(case), **shared, "torchrec": theirs, "milp_planner": mine, **machine()}


def _outcome(outcome: Any, theirs: float | None) -> dict[str, Any]:
    better = [
        p.seconds
        for p in outcome.trace
        if p.objective is not None and (theirs is None or p.objective <= theirs * 1e9)
    ]
    return {
        "status": outcome.status.value,
        "bound_ms": None if outcome.bound is None else outcome.bound / 1e9,
        "gap": outcome.gap,
        "formulation_seconds": outcome.seconds,
        "seconds_to_better": better[0] if better else None,
    }


def machine() -> dict[str, Any]:
    """Where and when it ran."""
    from importlib.metadata import version

    from formulations.settings import available_cores

    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cores": available_cores(),
        "load": round(os.getloadavg()[1], 1),
        "python": platform.python_version(),
        "torchrec_version": version("torchrec"),
        "ortools_version": version("ortools"),
    }


def packing(count: int, slack: float = 1.05) -> dict[str, Any]:
    """Random table-wise fused tables on 2 to 4 ranks, capacity the mean load × ``slack``.

    Counted over the cases for which a placement exists; the others are proved infeasible.
    """
    from torch import nn
    from torchrec.distributed.planner import EmbeddingShardingPlanner
    from torchrec.distributed.planner.storage_reservations import (
        FixedPercentageStorageReservation,
    )
    from torchrec.distributed.planner.types import PlannerError

    from formulations import Settings, Status
    from milp_planner.integrations.torchrec import MilpShardingPlanner, NoPlan

    draw = random.Random(0)
    found = {"feasible": 0, "proved_infeasible": 0, "open": 0, "torchrec_fails": 0}
    for _ in range(count):
        ranks, options, capacity = _packing_case(draw, slack)
        common = {
            "topology": _flat_topology(ranks, capacity),
            "enumerator": _Fixed(options),
            "storage_reservation": FixedPercentageStorageReservation(0.0),
            "stats": [],
        }
        brief = Settings(time_limit=20.0, workers=1, polish=False, certificate=False)
        try:
            MilpShardingPlanner(**common, settings=brief).plan(nn.Module(), [])
        except NoPlan as error:
            assert error.outcome is not None
            proved = error.outcome.status == Status.INFEASIBLE
            found["proved_infeasible" if proved else "open"] += 1
            continue
        found["feasible"] += 1
        try:
            EmbeddingShardingPlanner(**common).plan(nn.Module(), [])
        except PlannerError:
            found["torchrec_fails"] += 1
    return {"cases": count, "slack": slack, **found, **machine()}


class _Fixed:
    """An enumerator that offers given options."""

    def __init__(self, options: list[Any]) -> None:
        self.options = options

    def enumerate(self, module: Any, sharders: Any) -> list[Any]:
        return self.options


def _flat_topology(ranks: int, hbm: int) -> Any:
    from torchrec.distributed.planner import Topology

    return Topology(world_size=ranks, compute_device="cuda", hbm_cap=hbm, ddr_cap=0)


def _packing_case(draw: random.Random, slack: float) -> tuple[int, list[Any], int]:
    ranks = draw.randint(2, 4)
    sizes = [draw.randint(1, 100) for _ in range(draw.randint(ranks + 1, 3 * ranks + 2))]
    capacity = int(sum(sizes) / ranks * slack)
    return ranks, [_option(i, size) for i, size in enumerate(sizes)], capacity


def _option(index: int, size: int) -> Any:
    import torch
    from torch import nn
    from torchrec.distributed.planner.types import Perf, Shard, ShardingOption, Storage

    perf = Perf(fwd_compute=1.0, fwd_comms=0.0, bwd_compute=0.0, bwd_comms=0.0)
    return ShardingOption(
        name=f"t{index}",
        tensor=torch.empty(size, 4, device="meta"),
        module=("ebc", nn.Module()),
        input_lengths=[1.0],
        batch_size=1,
        sharding_type="table_wise",
        partition_by="device",
        compute_kernel="fused",
        shards=[Shard([size, 4], [0, 0], Storage(hbm=size, ddr=0), perf)],
        is_pooled=True,
    )


def table() -> str:
    """The page's tables from the stored results."""
    lines = [
        "| tables × ranks | seed | tables ÷ HBM | TorchRec ms | s | ours ms | bound ms | gap | s | "
        "first at least as good after |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    dates: set[str] = set()
    loads: list[float] = []
    for path in sorted(RESULTS.glob("model_*.json")):
        r = json.loads(path.read_text())
        tables, ranks, seed, tight, _ = r["case"]
        t, m = r["torchrec"], r["milp_planner"]
        theirs = t.get("error") or f"{t['ms']:.3f}"
        loads.append(r["load"])
        dates.add(f"{r['date']}, {r['cores']} cores, TorchRec {r['torchrec_version']}")
        lines.append(
            f"| {tables}×{ranks} | {seed} | {tight or 'loose'} | {theirs} | {t['seconds']:.1f} | "
            f"{_show(m['ms'])} | {_show(m.get('bound_ms'))} | {_gap(m.get('gap'))} | "
            f"{m['seconds']:.1f} | {_show(m.get('seconds_to_better'), 1)} s |"
        )
    busy = f"load of the machine during the runs {min(loads)}–{max(loads)}"
    return "\n".join([*sorted(dates), busy, "", *lines])


def packing_lines() -> str:
    """What the packing run counted, in a sentence."""
    r = json.loads((RESULTS / "packing.json").read_text())
    share = r["torchrec_fails"] / r["feasible"]
    return (
        f"{r['date']}, TorchRec {r['torchrec_version']}: of {r['cases']} cases a plan exists for "
        f"{r['feasible']}; TorchRec's default planner finds none for {r['torchrec_fails']} of them "
        f"({share:.1%}). {r['proved_infeasible']} are proved infeasible, {r['open']} left open."
    )


def write_page() -> None:
    """Put both tables between their marks in docs/torchrec.md."""
    blocks = {}
    if any(RESULTS.glob("model_*.json")):
        blocks["models"] = table()
    if (RESULTS / "packing.json").exists():
        blocks["packing"] = packing_lines()
    update(RESULTS.parents[2] / "docs" / "torchrec.md", blocks)


def _show(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _gap(value: float | None) -> str:
    return "–" if value is None else f"{value:.2%}"


def main(arguments: list[str]) -> None:
    """Run what was asked for and store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["models", "packing", "table"])
    parser.add_argument("--count", type=int, default=1000, help="packing cases")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    RESULTS.mkdir(exist_ok=True)
    if chosen.what == "table":
        write_page()
    elif chosen.what == "packing":
        result = packing(chosen.count)
        (RESULTS / "packing.json").write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(result))
    else:
        for number, case in enumerate(CASES):
            path = RESULTS / f"model_{number:02d}.json"
            if not path.exists():
                path.write_text(json.dumps(run_case(case), indent=1) + "\n")
                print(path.read_text())


if __name__ == "__main__":
    main(sys.argv[1:])
