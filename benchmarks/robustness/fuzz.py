"""Any number of damaged YAML and instance files: each gives a sentence or a sound value.

Usage: python benchmarks/robustness/fuzz.py --count 1000000 [--first 0] [-o results/FILE.json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.robustness.damage import corpus, damaged, plain  # noqa: E402
from tests.robustness.oracle import judge  # noqa: E402

#: Small files first: most inputs should be cheap.
WEIGHTS = {"model": 4, "cluster": 4, "instance": 2}
KEPT = 50
#: Files between two stored states: a run that is ended from outside keeps its count.
EVERY = 5_000


class Tally:
    """What has happened so far."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.findings: list[dict[str, object]] = []
        self.num_findings = 0
        self.slowest = 0.0

    def note(self, seed: int, path: Path, error: BaseException) -> None:
        """Keep a finding with what repeats it."""
        self.num_findings += 1
        if len(self.findings) < KEPT:
            what = traceback.format_exception_only(error)[-1].strip()[-600:]
            self.findings.append({"seed": seed, "file": path.name, "what": what})


def seeds() -> list[tuple[str, Path, bytes, dict[str, object]]]:
    """Corpus files, each as often as its weight says."""
    found = []
    for kind, weight in WEIGHTS.items():
        paths = corpus(kind)
        for index in range(weight):
            path = paths[index % len(paths)]
            found.append((kind, path, path.read_bytes(), plain(path)))
    return found


def fuzz(first: int, count: int, seconds: float, tally: Tally, keep: Callable[[], object]) -> None:
    """Judge that many damaged files, or as many as the seconds allow; ``keep`` stores progress."""
    files = seeds()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as tmp:
        targets = {p: Path(tmp) / f"{k}{p.suffix}" for k, p, _, _ in files}
        for seed in range(first, first + count):
            if time.monotonic() > end:
                return
            if (seed - first) % EVERY == 0:
                keep()
            kind, path, raw, document = files[seed % len(files)]
            target = targets[path]
            content, wrong = damaged(seed, raw, document)
            target.write_bytes(content)
            start = time.perf_counter()
            try:
                tally.accepted[kind] += judge(kind, target, wrong)
            except (Exception, RecursionError) as error:
                tally.note(seed, path, error)
            tally.done[kind] += 1
            tally.slowest = max(tally.slowest, time.perf_counter() - start)


def summary(given: argparse.Namespace, tally: Tally, start: float) -> dict[str, object]:
    """The result to store."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "first_seed": given.first,
        "asked": given.count,
        "files": sum(tally.done.values()),
        "files_by_kind": dict(tally.done),
        "accepted_by_kind": dict(tally.accepted),
        "findings": tally.num_findings,
        "first_findings": tally.findings,
        "slowest_seconds": round(tally.slowest, 4),
        "seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(time.process_time(), 1),
    }


def main() -> int:
    """Run and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("-o", type=Path, default=None)
    given = parser.parse_args()
    tally, start = Tally(), time.perf_counter()

    def keep() -> str:
        text = json.dumps(summary(given, tally, start), indent=1, ensure_ascii=False) + "\n"
        if given.o is not None:
            given.o.write_text(text, encoding="utf-8")
        return text

    fuzz(given.first, given.count, given.seconds, tally, keep)
    print(keep())
    return 1 if tally.num_findings else 0


if __name__ == "__main__":
    sys.exit(main())
