"""Files of DLRMv4's variables, drawn, replayed here and by TorchRec's own planner.

``python benchmarks/replay/drawn.py [--settings 300] [--seed 0]``; exit code 1 if any differs.
"""

import argparse
import logging
import random
import shlex
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from milp_planner.errors import FallsShort
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations.exports import dlrmv4
from milp_planner.integrations.replay.dlrmv4 import runs_now
from milp_planner.integrations.replay.judge import placed
from milp_planner.pricing.options import MODE_OF_KERNEL

DENSE = (0, 2**29)
"""Bytes of the dense parameters."""
KINDS = ("row_wise", "column_wise", "table_wise", "data_parallel")


@dataclass(frozen=True)
class Drawn:
    """A file's variables, and what it is for."""

    variables: dict[str, str]
    model: Model
    cluster: Cluster

    @property
    def text(self) -> str:
        """As a shell sources it."""
        return "".join(f"export {k}={shlex.quote(v)}\n" for k, v in self.variables.items())


def drawn(draw: random.Random) -> Drawn:
    """Tables, a cluster and a file that sets some of the variables, for some of the tables."""
    names = [f"t{index}" for index in range(draw.randint(2, 9))]
    dim, dense = draw.choice([128, 512]), draw.choice(DENSE)
    tables = [
        {"name": name, "rows": draw.choice([1000, 40_000, 1_000_001, 20_000_000]), "dim": dim,
         "output": "sequence", "sequence_length": draw.choice([1, 1, 100])}
        for name in names
    ]  # fmt: skip
    model = {
        "name": "drawn", "tables": tables,
        "workload": {"batch_per_rank": 64, "exchange_dtype": draw.choice(["fp32", "fp16"]),
                     "dedup": draw.random() < 0.5},
        "outside_embeddings": {"parameter_bytes": dense},
    }  # fmt: skip
    cluster = {
        "name": "drawn", "machines": draw.choice([1, 1, 2, 4]), "hbm": "80GiB", "ddr": "2TiB",
        "ranks_per_machine": draw.choice([4, 8]), "profile": "mi350x",
        "interconnect": {"intra_machine": "600GB/s", "inter_machine": "50GB/s"},
    }  # fmt: skip
    return Drawn(_variables(draw, names), Model.from_dict(model), Cluster.from_dict(cluster))


def _variables(draw: random.Random, names: list[str]) -> dict[str, str]:
    """Each is left out half of the time, as is each table in the overrides."""
    places = ["hbm", "hbm", "auto", "uvm", "uvm_caching"]
    found = {
        dlrmv4.PLACEMENT: draw.choice(["hbm", "hbm", "auto", "uvm_caching"]),
        dlrmv4.PLACEMENT_OVERRIDES: _some(draw, names, places),
        dlrmv4.SHARDING_OVERRIDES: _some(draw, names, [*KINDS[:3], *KINDS]),
        dlrmv4.BATCH: draw.choice(["64", "512"]),
        dlrmv4.FORWARD: draw.choice(["fp32", "fp16", "bf16"]),
        dlrmv4.BACKWARD: draw.choice(["fp32", "fp16", "bf16"]),
        dlrmv4.CODEC: draw.choice(["0", "1"]),
        dlrmv4.DEDUP: draw.choice(["0", "1"]),
        dlrmv4.HBM: draw.choice(["4", "8", "20", "60"]),
        dlrmv4.TORCHREC: draw.choice(["1.4.0", "1.8.0"]),
    }
    return {name: value for name, value in found.items() if value and draw.random() < 0.5}


def _some(draw: random.Random, names: list[str], values: list[str]) -> str:
    return ",".join(f"{n}={draw.choice(values)}" for n in names if draw.random() < 0.4)


def theirs(file: Drawn) -> dict[str, PinSpec] | None:
    """What TorchRec's planner makes of the file; None if it stops."""
    from torchrec.distributed.planner.types import PlannerError

    from tests.milp_planner.integrations.torchrec.trainer import trained

    host = 128 if dlrmv4.has_host_memory(file.variables) else 0
    try:
        found = trained(file.variables, file.model, file.cluster, host)
    except (PlannerError, RuntimeError):
        return None
    pins = {}
    for name, entry in found.items():
        whole = entry.sharding_type == "column_wise" and len(entry.ranks) == 1
        pins[name] = PinSpec(
            mode=MODE_OF_KERNEL[entry.compute_kernel], ranks=tuple(entry.ranks),
            sharding_type="table_wise" if whole else entry.sharding_type,
        )  # fmt: skip
    return pins


def ours(file: Drawn) -> dict[str, PinSpec] | None:
    """What the replay makes of it; None if the trainer would stop."""
    try:
        return runs_now(file.text, file.model, file.cluster)
    except FallsShort:
        return None


def bare(pins: dict[str, PinSpec] | None) -> dict[str, tuple[object, ...]] | None:
    """Type, mode and ranks."""
    return pins and {name: (p.sharding_type, p.mode, p.ranks) for name, p in pins.items()}


def again(file: Drawn, pins: dict[str, PinSpec]) -> bool:
    """Whether the export of what runs, with the file's cap and TorchRec, is the same again."""
    from tests.milp_planner.integrations.exports.plans import plan_of

    model = dlrmv4.stated(file.text, file.model)
    kept = {k: file.variables.get(k, "") for k in (dlrmv4.HBM, dlrmv4.TORCHREC)}
    text = dlrmv4.write(placed(plan_of(model, on=file.cluster), pins), kept)
    alike = dlrmv4.unlike(text, model) == []
    return alike and bare(runs_now(text, model, file.cluster)) == bare(pins)


def main() -> int:
    """Draw, compare and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for seed in range(given.seed, given.seed + given.settings):
        file = drawn(random.Random(seed))
        found = ours(file)
        if bare(found) != bare(theirs(file)):
            counts["differ"] += 1
            print(f"seed {seed}: {file.text}{bare(found)}\n{bare(theirs(file))}")
        elif found is None:
            counts["stop in both"] += 1
        else:
            counts["run alike" if again(file, found) else "run otherwise when exported"] += 1
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["differ"] or counts["run otherwise when exported"] else 0


if __name__ == "__main__":
    sys.exit(main())
