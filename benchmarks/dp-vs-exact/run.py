"""DP against exact on the experiment's cases: ``python benchmarks/dp-vs-exact/run.py``.

One JSON line per case is appended to ``results/FILE.jsonl``; cases already there are skipped, so an
interrupted run resumes where it stopped. ``--prove`` then gives ``auto`` more time for the cases
that ``cpsat`` left open. ``figures.py`` draws the figures and tables.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cases import Case, large, make, published, small, sweep, two_tier

from formulations import Instance, Outcome, Placement, Settings, solve
from milp_planner.files import write_atomically

HERE = Path(__file__).parent

#: Name -> options of ``dp``: the published variants, coarser and finer bins, fusion-aware.
DPS: dict[str, dict[str, Any]] = {
    "merged 100x25": {},
    "first 100x50": {"variant": "first"},
    "merged 25x6": {"hbm_bins_per_device": 25, "ddr_bins_per_device": 6},
    "merged 10x5": {"hbm_bins_per_device": 10, "ddr_bins_per_device": 5},
    "merged 400x100": {"hbm_bins_per_device": 400, "ddr_bins_per_device": 100},
    "fusion-aware 100x25": {"fusion_aware": True},
}

#: The ones that are run on the large sizes.
ON_LARGE = ("merged 100x25", "merged 25x6", "fusion-aware 100x25")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--set", choices=("published", "sweep", "large", "two-tier", "small"), default="published"
    )
    parser.add_argument("--seeds", type=int, default=2, help="seeds of the sweep")
    parser.add_argument(
        "--time-limit", type=float, default=20.0, help="seconds for each exact solve"
    )
    parser.add_argument("--dp-limit", type=float, default=30.0, help="seconds for each DP")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--stop-after", type=float, default=None, help="minutes for this run")
    parser.add_argument(
        "--prove", type=float, default=None, metavar="SECONDS",
        help="solve the stored cases without a proof again with auto, for so long each",
    )  # fmt: skip
    args = parser.parse_args()
    cases = {
        "published": published,
        "small": small,
        "large": large,
        "two-tier": two_tier,
        "sweep": lambda: sweep(args.seeds),
    }
    path = args.results / f"{args.set}.jsonl"
    if args.prove is not None:
        prove(cases[args.set](), path, args)
    else:
        run(cases[args.set](), path, args)


def run(cases: Iterable[Case], path: Path, args: argparse.Namespace) -> None:
    """Solve every case that the file does not have yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {json.loads(line)["case"] for line in path.read_text().splitlines()} if (
        path.exists()) else set()  # fmt: skip
    started = time.monotonic()
    for case in cases:
        if args.stop_after is not None and time.monotonic() - started > 60 * args.stop_after:
            break
        if case.key in done:
            continue
        row = measure(case, args.time_limit, args.dp_limit)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row["case"], row.get("exact", {}).get("objective"), file=sys.stderr)


def prove(cases: Iterable[Case], path: Path, args: argparse.Namespace) -> None:
    """Solve every stored case without a proof again; store each answer as it comes."""
    stored = {row["case"]: row for row in map(json.loads, path.read_text().splitlines())}
    started = time.monotonic()
    for case in cases:
        row = stored.get(case.key)
        if row is None or row.get("exact", {}).get("status") in (None, "optimal"):
            continue
        if row["exact"].get("again", 0) >= args.prove:
            continue
        if args.stop_after is not None and time.monotonic() - started > 60 * args.stop_after:
            break
        instance = make(case)
        assert instance is not None
        outcome = _solve(instance, "auto", args.prove, {})
        row["exact"] = _better(row, outcome) | {"again": args.prove}
        write_atomically(path, "".join(json.dumps(r) + "\n" for r in stored.values()))
        print(row["case"], row["exact"], file=sys.stderr)


def _better(row: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """The best plan of any method, the best bound of both exact ones."""
    before = row["exact"]
    plans = [v["objective"] for v in row.values() if isinstance(v, dict)] + [outcome.objective]
    value = min((p for p in plans if p is not None), default=None)
    bound = max(before["bound"] or 0, outcome.bound or 0)
    proved = value is not None and bound >= value
    return {
        "status": "optimal" if proved else "unknown" if value is None else "feasible",
        "stopped_by": "proof" if proved else "time_limit",
        "objective": value,
        "bound": bound,
        "seconds": round(before["seconds"] + outcome.seconds, 3),
        **provenance(),
    }


def measure(case: Case, time_limit: float, dp_limit: float) -> dict[str, Any]:
    """One case: every DP's answer, and the exact one, which starts from the best of them."""
    row: dict[str, Any] = {"case": case.key, **vars(case), **provenance()}
    instance = make(case)
    if instance is None:
        return {**row, "skipped": "no drawn plan could be placed"}
    row["options"] = instance.num_options
    plans = []
    for name, options in DPS.items():
        if not _wanted(name, case):
            continue
        plans.append(_solve(instance, "dp", dp_limit, options))
        row[name] = _described(plans[-1])
    uniform = {"uniform": {"proposers": ["uniform"]}} if case.group == "two-tier" else {}
    for name, options in {"greedy": {}, **uniform}.items():
        plans.append(_solve(instance, "greedy", dp_limit, options))
        row[name] = _described(plans[-1])
    found = [p for p in plans if p.objective is not None]
    best = min(found, key=lambda p: p.objective or 0, default=None)
    prover = "auto" if case.group == "two-tier" else "cpsat"
    exact = _solve(instance, prover, time_limit, {}, None if best is None else best.placement)
    row["exact"] = _described(exact)
    return row


def _wanted(name: str, case: Case) -> bool:
    """Whether a DP has a meaning for the case and, on many ranks, not too many cells."""
    if name.startswith("fusion-aware") and not case.fusion:
        return False
    if case.group == "two-tier":
        return name == "merged 100x25"
    if case.group == "large":
        return name in ON_LARGE
    return name != "merged 400x100" or case.group != "sweep" or case.machines * case.local < 4


def _solve(
    instance: Instance,
    formulation: str,
    limit: float,
    options: dict[str, Any],
    hint: Placement | None = None,
) -> Outcome:
    asked = Settings(
        time_limit=limit, workers=2, polish=False, certificate=False, options=options, hint=hint
    )
    return solve(instance, formulation, asked)


def _described(outcome: Outcome) -> dict[str, Any]:
    return {
        "status": str(outcome.status),
        "stopped_by": str(outcome.stopped_by),
        "objective": outcome.objective,
        "bound": outcome.bound,
        "seconds": round(outcome.seconds, 3),
        **_unfused(outcome),
    }


def _unfused(outcome: Outcome) -> dict[str, Any]:
    """The plan as the DP believed it, where it ignored fusion groups."""
    unfused: Any = outcome.detail.get("unfused")
    if unfused is None:
        return {}
    return {"planned": unfused["objectives"]["busiest_rank"], "note": outcome.note}


def provenance() -> dict[str, str]:
    """When and with what this row was measured."""
    return {
        "measured": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "ortools": version("ortools"),
        "numpy": version("numpy"),
    }


if __name__ == "__main__":
    main()
