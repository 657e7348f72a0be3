"""Models drawn at random, as someone's first model looks, as instance files.

    python benchmarks/catalogue/drawn.py FOLDER [--count 20] [--first 0]

Model N has 26 to 60 tables, no two alike: rows between 1e3 and 4e8 and ids a sample between 1 and
120, both evenly by their logarithm, dims from 16 to 256. Even N lie on two machines of 8 H100
each, odd ones on four. Nothing is tuned on them but on numbers of 1000 and more.
"""

import argparse
import json
import math
import random
import tempfile
from pathlib import Path

from formulations import Instance, write_instance
from milp_planner.inputs.changes import changed_cluster
from milp_planner.inputs.files import load_model
from milp_planner.plans.compile import compile_for
from scenarios.catalog import find_cluster

DIMS = (16, 32, 48, 64, 96, 128, 192, 256)


def model_of(number: int) -> dict[str, object]:
    """What the model's file holds."""
    draw = random.Random(f"drawn {number}")

    def between(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    tables = [
        {
            "name": f"t{i}",
            "rows": int(between(1e3, 4e8)),
            "dim": draw.choice(DIMS),
            "pooling_factor": round(between(1, 120), 1),
        }
        for i in range(draw.randint(26, 60))
    ]
    return {
        "name": f"drawn-{number}",
        "workload": {"batch_per_rank": 2048, "mode": "training"},
        "defaults": {
            "kind": "torchrec",
            "dtype": "fp32",
            "output": "pooled",
            "optimizer": "rowwise_adagrad",
            "access": {"kind": "zipf", "alpha": 1.05},
        },
        "tables": tables,
    }


def instance_of(number: int) -> Instance:
    """The instance that ``plan`` solves for model ``number``."""
    cluster = find_cluster("4x8xh100")
    if number % 2 == 0:
        cluster = changed_cluster(cluster, {"machines": 2})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(json.dumps(model_of(number)), encoding="utf-8")
        return compile_for(load_model(path), cluster, "step_time").instance


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for number in range(asked.first, asked.first + asked.count):
        instance = instance_of(number)
        write_instance(instance, asked.folder / f"drawn-{number}.json.gz")
        print(f"drawn-{number}", instance.num_tables, instance.num_ranks, instance.num_options)


if __name__ == "__main__":
    main()
