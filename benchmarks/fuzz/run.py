"""Every formulation against enumeration on random small instances; no answer may be false.

``python benchmarks/fuzz/run.py --count 10000`` resumes where the summary it writes ends; Ctrl-C
keeps what was done. ``--only 4711`` plays one instance and shows what is false.
"""

import argparse
import json
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.formulations.fuzz.contest import CONTESTANTS, Result, play  # noqa: E402

#: Seconds between two writes of the summary.
EVERY = 20.0
Played = tuple[int, list[Result], float]


def main() -> None:
    """Play, count, write."""
    args = _arguments()
    names = args.formulations or list(CONTESTANTS)
    if args.only is not None:
        for result in play(args.only, names, args.seconds):
            print(result.name, result.answer, *result.wrong, sep="\n  ")
        return
    summary = _load(args.output, args.first, names, args.seconds)
    written, before = time.monotonic(), summary["seconds"]
    start = time.monotonic()
    try:
        for number, results, _ in _games(args, summary["next"], names):
            _count(summary, number, results)
            summary["seconds"] = round(before + time.monotonic() - start, 1)
            if time.monotonic() - written > EVERY:
                _save(args.output, summary)
                written = time.monotonic()
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here")
    _save(args.output, summary)
    print(json.dumps({k: v for k, v in summary.items() if k != "wrong"}, indent=1))
    if summary["wrong"]:
        sys.exit(f"{len(summary['wrong'])} false: see {args.output}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="instances in all")
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--only", type=int, help="play this number alone")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of every solve")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--formulations", nargs="+", choices=CONTESTANTS, metavar="NAME")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks/fuzz/summary.json")
    return parser.parse_args()


def _games(args: argparse.Namespace, start: int, names: list[str]) -> Iterator[Played]:
    """Results in order of their numbers, so that one number says what is done."""
    numbers = range(start, args.first + args.count)
    one = partial(_play, names=names, seconds=args.seconds)
    if args.processes == 1:
        yield from map(one, numbers)
        return
    ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with multiprocessing.get_context("spawn").Pool(args.processes, ignore) as pool:
        yield from pool.imap(one, numbers)


def _play(number: int, names: list[str], seconds: float) -> Played:
    start = time.monotonic()
    return number, play(number, names, seconds), time.monotonic() - start


def _load(path: Path, first: int, names: list[str], seconds: float) -> dict[str, Any]:
    if path.exists():
        summary: dict[str, Any] = json.loads(path.read_text())
        asked = {"first": first, "formulations": names, "time_limit": seconds}
        if any(summary[k] != v for k, v in asked.items()):
            sys.exit(f"{path} was written with other settings: give another -o")
        return summary
    return {
        "first": first, "next": first, "formulations": names, "time_limit": seconds,
        "seconds": 0.0, "answers": {n: {} for n in names}, "wrong": [],
    }  # fmt: skip


def _count(summary: dict[str, Any], number: int, results: list[Result]) -> None:
    summary["next"] = number + 1
    for result in results:
        answers = Counter(summary["answers"].get(result.name, {}))
        answers[result.answer] += 1
        summary["answers"][result.name] = dict(sorted(answers.items()))
        if result.wrong:
            summary["wrong"].append([number, result.name, *result.wrong])
            print(number, result.name, *result.wrong, sep="\n  ", flush=True)


def _save(path: Path, summary: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(summary, indent=1) + "\n")
    os.replace(part, path)


if __name__ == "__main__":
    main()
