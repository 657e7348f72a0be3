"""The ablation: its pairs, whether every switch fits the search, and resuming a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.ablation import again, parts, run, table
from formulations import Settings, registry
from formulations.clock import Clock
from formulations.instance.file import write_instance
from formulations.search import conductor
from formulations.search.bounds import Bounds
from formulations.search.context import Context
from formulations.search.lists import LARGE, Shared
from formulations.search.plans import Plans
from formulations.search.prover import Prover
from formulations.search.whole import Whole
from tests.formulations.examples import two_modes
from tests.formulations.proof.test_prove import four_tables


def row(
    without: str, instance: str, seed: int, plan: int | None, bound: int, code: str = ""
) -> run.Row:
    """One stored solve."""
    return {"without": without, "instance": instance, "seed": seed, "units": 1.0,
            "code": code, "objective": plan, "bound": bound}  # fmt: skip


def test_seeds_are_averaged_before_instances() -> None:
    """Plans 10% and 30% dearer on one instance and equal on the other average 10% ± 10%; gaps
    alike."""
    base = parts.BASE.name
    rows = [
        row(base, "a", 0, 100, 100), row(base, "a", 1, 100, 100), row(base, "b", 0, 100, 50),
        row("x", "a", 0, 110, 100), row("x", "a", 1, 130, 100), row("x", "b", 0, 100, 50),
    ]  # fmt: skip
    (effect,) = table.effects(rows)
    assert effect.plan == pytest.approx({"a": 20.0, "b": 0.0})
    assert table.spread(effect.plan.values()) == pytest.approx((10.0, 10.0))
    assert effect.gap["a"] == pytest.approx(100 * (10 / 110 + 30 / 130) / 2)
    assert (effect.pairs, effect.worse, effect.better, effect.lost) == (3, 2, 0, 0)
    assert effect.worst()[0] == "a" and effect.buys() is False


def test_five_pairs_of_five_are_no_chance() -> None:
    """Without x all five pairs end worse, one by far: the mean is noise, the signs are not. Four of
    five may be chance."""
    base, each = parts.BASE.name, (101, 101, 101, 101, 300)
    rows = [row(base, str(i), 0, 100, 50) for i in range(5)]
    rows += [row("x", str(i), 0, plan, 50) for i, plan in enumerate(each)]
    rows += [row("y", str(i), 0, plan, 50) for i, plan in enumerate((99, *each[1:]))]
    buys = {effect.name: effect.buys() for effect in table.effects(rows)}
    assert buys == {"x": True, "y": False}


def test_a_plan_that_is_not_found_counts_as_the_whole_gap() -> None:
    """A lost plan is counted, but makes no pair of plans to compare."""
    base = parts.BASE.name
    (effect,) = table.effects([row(base, "a", 0, 100, 100), row("x", "a", 0, None, 90)])
    assert (effect.plan, effect.lost, effect.gap) == ({}, 1, {"a": 100.0})
    assert effect.bound == pytest.approx({"a": 10.0})


def test_solves_of_different_searches_are_no_pairs() -> None:
    """A solve from before a change is not compared with one from after it."""
    rows = [row(parts.BASE.name, "a", 0, 100, 100, "old"), row("x", "a", 0, 110, 100, "new")]
    assert table.effects(rows) == []


def test_what_was_not_measured_is_said() -> None:
    """The note below the table names a part that has no row."""
    assert table.table([], ["x", "y"]).endswith("\nNot measured yet (2): x, y.")


def test_a_switch_changes_the_parts_that_take_turns() -> None:
    """Without urgency nothing goes first; without replicas they get no turn."""
    settings = Settings(time_limit=30, workers=1)
    context = Context(two_modes(), settings, Clock(settings), np.ones(4, dtype=bool))
    whole = Whole(context)
    plans = Plans(context, np.asarray([0, 2]))
    bounds = Bounds(context, whole, plans.choose, plans.choose)
    shared = Shared(context, bounds, whole, Prover(context, whole))
    named = {variant.name: variant for variant in parts.PARTS}
    for name, urgent, alive in (("urgency", False, True), ("replicas", True, False)):
        with named[name].switch():
            made = {p.name: p for p in conductor.parts(LARGE.primal, shared, plans)}
        assert (made["packing"].urgent(), made["replicas"].alive) == (urgent, alive)


@pytest.mark.parametrize("name", run.SETS)
def test_every_switch_fits_the_search(name: str) -> None:
    """The attributes it replaces exist, its settings are allowed, names are unique, and it restores
    all."""
    before, variants = conductor.Part, run.SETS[name]()
    for variant in variants:
        registry.get("auto").check(variant.options)
        with variant.switch():
            pass
    assert len({variant.name for variant in variants}) == len(variants)
    assert conductor.Part is before


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call solves only what the first left out; solves counted in work repeat."""
    write_instance(two_modes(), tmp_path / "one.json")
    output = tmp_path / "rows.jsonl"

    def call(*names: str) -> list[dict[str, Any]]:
        asked = f"run.py {tmp_path} --instances one.json --units 0.5 --seeds 1 -o {output} --only"
        monkeypatch.setattr(sys, "argv", [*asked.split(), *names])
        run.main()
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]

    first = call("swaps")
    assert [r["without"] for r in first] == [parts.BASE.name, "swaps"]
    again = call("swaps", "ruin")
    assert again[:2] == first
    assert [r["without"] for r in again[2:]] == ["ruin"]
    assert {r["objective"] for r in again} == {first[0]["objective"]}


@pytest.mark.parametrize("limited", [True, False])
def test_planning_again_repeats(tmp_path: Path, limited: bool) -> None:
    """Four tables, of which three are new: 22 again, the least that they cost, where bytes may
    hardly move; otherwise the byte of the fourth moves to make room. The same when asked twice."""
    path = tmp_path / "four.json"
    write_instance(four_tables(), path)
    plain, *_ = given = [again.again(path, parts.BASE, 0, limited) for _ in range(2)]
    assert given[0] == given[1] and plain["status"] == "a plan"
    step = next(v for v in again.variants() if v.name == "tables that go home")
    assert again.again(path, step, 0, limited)["status"] == "a plan"
    assert plain["objective"] == (22 if limited else 1)
