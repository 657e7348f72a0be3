"""Write the catalogue as instance files: shipped models on shipped clusters, as ``plan`` prices
them.

    python benchmarks/catalogue/make.py FOLDER [--check]

Every model has at least one cluster; settings are tuned on the first group only. The files are not
part of the repository: prices follow from the code, and instances.json has every file's
fingerprint. The command writes it anew; ``--check`` only says which instances have changed (exit
code 1).
"""

import argparse
import json
import sys
from pathlib import Path

from formulations import Instance, write_instance
from milp_planner.plans.compile import compile_for
from scenarios.catalog import find_cluster, find_model

HERE = Path(__file__).resolve().parent
STORED = HERE / "instances.json"
DEFAULT, BUSIEST = "step_time", "busiest_rank"

#: Model, cluster and objective of instances that settings may be tuned on.
TRAINING = (
    ("criteo-terabyte-full", "8xa100", DEFAULT),
    ("distemb-jumbo", "16x8xa100", DEFAULT),
    ("distemb-large", "4x8xa100", DEFAULT),
    ("distemb-medium", "8xa100", DEFAULT),
    ("distemb-small", "8xa100", DEFAULT),
    ("distemb-tiny", "8xa100", DEFAULT),
    ("dlrmv4-yambda5b", "8xb200-tight", DEFAULT),
    ("dlrmv4-yambda5b", "8xmi350x", DEFAULT),
    ("embark-t510", "8xh200", DEFAULT),
    ("embark-t7", "4x8xh100", DEFAULT),
    ("mlperf-dlrm-dcnv2", "8xh100", DEFAULT),
    ("torchrec-production", "12x8xtorchrec-default", DEFAULT),
    ("torchrec-production", "12x8xtorchrec-default", BUSIEST),
)
#: Instances that are only reported.
UNSEEN = (
    ("criteo-kaggle", "8xa100", DEFAULT),
    ("criteo-terabyte", "8xa100", DEFAULT),
    ("distemb-colossal", "16x8xb200", DEFAULT),
    ("distemb-small", "4x8xh100", DEFAULT),
    ("distemb-tiny", "8xh200", DEFAULT),
    ("dlrmv3-kuairand", "8xh100", DEFAULT),
    ("dlrmv3-movielens-13b", "4x8xh100", DEFAULT),
    ("dlrmv3-streaming-100b", "4x8xh100", DEFAULT),
    ("embark-t180", "8xh200", DEFAULT),
    ("embark-t200", "8xh200", DEFAULT),
    ("kuairand-27k", "8xh100", DEFAULT),
    ("mlperf-dlrm-dcnv2", "4x8xa100", DEFAULT),
    ("torchrec-gb200", "gb200-nvl72", DEFAULT),
)


def instance_of(model: str, cluster: str, objective: str) -> Instance:
    """The instance that ``plan MODEL CLUSTER --objective OBJECTIVE`` solves."""
    return compile_for(find_model(model), find_cluster(cluster), objective).instance


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare the fingerprints")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, object]] = {}
    for group, cases in (("training", TRAINING), ("unseen", UNSEEN)):
        for model, cluster, objective in cases:
            instance = instance_of(model, cluster, objective)
            name = f"{model}_{cluster}" + ("" if objective == DEFAULT else f"_{objective}")
            if not asked.check:
                write_instance(instance, asked.folder / f"{name}.json.gz")
            found[name] = {"group": group, "fingerprint": instance.fingerprint}
            print(name, instance.num_tables, instance.num_ranks, instance.num_options, flush=True)
    if not asked.check:
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return 0
    known = json.loads(STORED.read_text(encoding="utf-8"))
    changed = [name for name in found if found[name] != known.get(name)]
    print("changed:", ", ".join(changed) or "none")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
