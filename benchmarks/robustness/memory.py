"""Peak memory and seconds of building and writing a very large Instance.

Usage: python benchmarks/robustness/memory.py [--tables 5000] [--machines 128] [-o FILE.json]
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path


def peak_gib() -> float:
    """Largest resident memory of this process so far (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Price, compile, write; report after each step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=5_000)
    parser.add_argument("--machines", type=int, default=128)
    parser.add_argument("--kind", default="torchrec", choices=("torchrec", "dynamicemb", "mixed"))
    parser.add_argument("-o", type=Path, default=None)
    given = parser.parse_args()
    from formulations import write_instance
    from milp_planner.inputs import Cluster
    from milp_planner.plans.compile import compile_for
    from scenarios.catalog import find_cluster
    from scenarios.generator import generate

    model = generate(given.tables, kind=given.kind)
    one = find_cluster("16x8xh100").to_dict()
    machine = one["machines"][0]
    cluster = Cluster.from_dict({**one, "machines": [machine] * given.machines})
    steps: list[dict[str, object]] = []

    def step(name: str, start: tuple[float, float]) -> None:
        wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
        seconds = {"wall_seconds": round(wall, 1), "processor_seconds": round(cpu, 1)}
        steps.append({"step": name, **seconds, "peak_gib": round(peak_gib(), 3)})
        print(steps[-1], flush=True)

    start = time.perf_counter(), time.process_time()
    instance = compile_for(model, cluster, "step_time").instance
    step("price and compile", start)
    sizes = {}
    for ending in ("json", "json.gz"):
        start = time.perf_counter(), time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"instance.{ending}"
            write_instance(instance, path)
            sizes[ending] = path.stat().st_size
        step(f"write {ending}", start)
    result = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "kind": given.kind,
        "tables": instance.num_tables,
        "ranks": instance.num_ranks,
        "options": instance.num_options,
        "blocks": instance.num_blocks,
        "shard_entries": len(instance.shard_repeat),
        "file_bytes": sizes,
        "steps": steps,
        "peak_gib": round(peak_gib(), 3),
    }
    print(json.dumps(result, indent=1))
    if given.o is not None:
        given.o.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
