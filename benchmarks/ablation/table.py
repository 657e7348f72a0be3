"""What each part buys, from the stored solves: tables of README.md.

``python benchmarks/ablation/table.py [--check]``. A difference is *without the part − with it*, for
the same instance and seed; it is averaged over the seeds of an instance first, and its noise is the
standard error of the mean over instances.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import mean, stdev

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ablation.parts import BASE, WALL_ONLY
from benchmarks.ablation.run import SETS, Row, key_of, rows_of
from benchmarks.pages import update

HERE = Path(__file__).resolve().parent
#: So improbable is what chance does not explain.
_CHANCE = 0.05
Key = tuple[object, ...]


@dataclass(frozen=True)
class Effect:
    """What taking a part out does, in percent; above 0: the part buys so much.

    Attributes
    ----------
    plan, bound, gap : dict of instance to float
        The plan dearer, the bound lower, the gap wider without the part (means over seeds); where
        no bound is known, the gap is as much wider as the plan is dearer.
    pairs, worse, better : int
        Pairs of solves, those that end with a wider gap without the part, and with a narrower one.
    lost : int
        Pairs without a plan where there was one, less those the other way round.
    """

    name: str
    plan: dict[str, float]
    bound: dict[str, float]
    gap: dict[str, float]
    pairs: int
    worse: int
    better: int
    lost: int

    def worst(self) -> tuple[str, float]:
        """The instance whose gap needs the part most."""
        return max(self.gap.items(), key=lambda pair: pair[1], default=("", 0.0))

    def buys(self) -> bool:
        """Whether the mean gap is wider without it by more than twice its noise, or more pairs are
        worse than chance explains (sign test, 5%)."""
        value, noise = spread(self.gap.values())
        tried = self.worse + self.better
        chance = sum(comb(tried, k) for k in range(self.worse, tried + 1)) / 2**tried
        return value > 2 * noise or chance < _CHANCE


def spread(values: Iterable[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    given = list(values)
    if not given:
        return 0.0, 0.0
    return mean(given), stdev(given) / len(given) ** 0.5 if len(given) > 1 else 0.0


def effects(rows: list[Row]) -> list[Effect]:
    """The effect of every part that has pairs, what buys most first."""
    solved: dict[str, dict[Key, Row]] = defaultdict(dict)
    for row in rows:
        solved[row["without"]][key_of(row)] = row
    base = solved.pop(BASE.name, {})
    found = [_effect(name, base, own) for name, own in solved.items() if own.keys() & base.keys()]
    return sorted(found, key=lambda effect: -spread(effect.gap.values())[0])


def _effect(name: str, base: dict[Key, Row], own: dict[Key, Row]) -> Effect:
    plan, bound, gap = (defaultdict[str, list[float]](list) for _ in range(3))
    worse = better = lost = 0
    pairs = [(row["instance"], base[key], row) for key, row in own.items() if key in base]
    for instance, one, other in pairs:
        both = one["objective"] and other["objective"]
        dearer = [100 * (other["objective"] / one["objective"] - 1)] if both else []
        plan[instance] += dearer
        bounds = [row["bound"] or 0 for row in (one, other)]
        bound[instance].append(100 * (bounds[0] - bounds[1]) / max(1, *bounds))
        wider = [_gap(other) - _gap(one)] if any(bounds) else dearer
        gap[instance] += wider
        worse, better = worse + any(w > 0 for w in wider), better + any(w < 0 for w in wider)
        lost += (other["objective"] is None) - (one["objective"] is None)
    means = [{i: mean(v) for i, v in each.items() if v} for each in (plan, bound, gap)]
    return Effect(name, *means, len(pairs), worse, better, lost)


def _gap(row: Row) -> float:
    """In percent; all of it where there is no plan or no bound."""
    if row["objective"] is None or row["bound"] is None:
        return 100.0
    return 100 * (row["objective"] - row["bound"]) / max(1, abs(row["objective"]))


def table(rows: list[Row], names: Iterable[str]) -> str:
    """In Markdown: what was measured, sorted; then what was not."""
    measured = effects(rows)
    lines = [
        "| without | plan dearer | bound lower | gap wider | most on | plans lost | worse | "
        "better | pairs |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines = [*lines, *map(_line, measured)] if measured else []
    known = {effect.name for effect in measured}
    left = [name for name in names if name not in known]
    if left:
        lines += ["", f"Not measured yet ({len(left)}): {', '.join(left)}."]
    return "\n".join(lines)


def _line(effect: Effect) -> str:
    cells = [_cell(each.values()) for each in (effect.plan, effect.bound, effect.gap)]
    where, most = effect.worst()
    where = f"{where.removeprefix('torchrec_').split('_hbm')[0]} {most:+.2f}" if most > 0 else ""
    return (
        f"| {effect.name}{'' if effect.buys() else ' †'} | {' | '.join(cells)} | "
        f"{where} | {effect.lost} | {effect.worse} | {effect.better} | {effect.pairs} |"
    )


def _cell(values: Iterable[float]) -> str:
    value, noise = spread(values)
    return f"{value:+.2f} ± {noise:.2f}"


def not_counted() -> str:
    """What counted work cannot tell, and why."""
    return "\n".join(f"- {name}: {why}" for name, why in WALL_ONLY.items())


def main() -> int:
    """Write the tables, or only tell whether they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    blocks = {
        name: table(rows_of(HERE / "results" / f"{name}.jsonl"), [v.name for v in variants()])
        for name, variants in SETS.items()
    }
    blocks["earlier"] = table(rows_of(HERE / "results" / "earlier.jsonl"), [])
    return update(HERE / "README.md", {**blocks, "not counted": not_counted()}, check=given.check)


if __name__ == "__main__":
    sys.exit(main())
