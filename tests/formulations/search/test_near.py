"""Plans near a wish: plans that fit stay, others are repaired with few bytes moved.

Compiled loops are cached under the text of all loops; Numba's own settings stay untouched.
"""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from formulations import Instance, Placement, Settings, solve
from formulations.instance import Current
from formulations.result.check import check, moved_bytes, moved_tables
from formulations.search import kept as module
from formulations.search import loops
from formulations.search.anneal import Sampler
from formulations.search.kernels import compiled
from formulations.search.near import nearest, settled
from formulations.search.numbers import NEAR
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, at, built, placed
from tests.formulations.search.searches import noted
from tests.formulations.strategies import instances


def tables_on(ranks: list[int], sizes: list[int], room: int) -> tuple[Instance, Placement]:
    """Whole tables of some bytes on ranks with some room, and the plan that puts them there."""
    current = [Current(t, t, ((rank,),)) for t, rank in enumerate(ranks)]
    tables = [{"whole": at(ANY, size, hbm=size, move_bytes=size)} for size in sizes]
    machines = [range(max(2, max(ranks) + 1))]
    instance = built(tables, "step_time", machines, phases=["time"], hbm=room, current=current)
    return instance, placed(range(len(sizes)), *[[rank] for rank in ranks])


def bytes_of(instance: Instance, plan: Placement) -> int:
    """That move."""
    return moved_bytes(instance, plan, moved_tables(instance, plan))


def test_a_plan_that_fits_is_kept() -> None:
    """The wish itself comes back."""
    instance, there = tables_on([0, 0, 1], [3, 3, 3], 9)
    assert settled(instance, there) is there


def test_the_fewest_bytes_move() -> None:
    """Rank 0 holds 11 of 9: moving the table of 2 is enough."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    plan = settled(instance, there)
    assert plan is not None and check(instance, plan).feasible
    assert bytes_of(instance, plan) == 2
    assert [int(plan.ranks[t][0][0]) for t in range(4)] == [0, 0, 1, 1]


def test_tables_without_a_place_are_packed() -> None:
    """A new table of 4 fits on rank 1 only; nothing that was there moves."""
    instance, there = tables_on([0, 1, 0], [6, 3, 4], 9)
    instance = replace(instance, current=instance.current[:2])
    wish = Placement(np.asarray([0, 1, -1]), [*there.ranks[:2], []])
    plan = settled(instance, wish)
    assert plan is not None and bytes_of(instance, plan) == 0
    assert int(plan.ranks[2][0][0]) == 1


def test_a_repair_ends_after_its_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no plan, as twelve bytes do not fit into ten, each try is made once: none
    repeats one that allowed everything."""
    instance, there = tables_on([0, 0, 1], [4, 4, 4], 5)
    tries = noted(monkeypatch, Sampler, "run")
    assert settled(instance, there) is None
    assert len(tries) == len(NEAR.tries)


@given(instances(max_tables=4, constraints=False), st.randoms(use_true_random=False))
def test_whatever_is_found_is_a_plan_and_no_limit_is_forgotten(instance, random) -> None:  # type: ignore[no-untyped-def]
    """From any wish of an option a table anywhere; where there is no plan, none is found."""
    if not instance.num_tables:
        return
    options = [random.choice([-1, *instance.options_of(t)]) for t in range(instance.num_tables)]
    wish = Placement(np.asarray(options), [[] for _ in options])
    current = tuple(Current(t, o, ()) for t, o in enumerate(options) if o >= 0)
    asked = replace(instance, current=current)
    plan = settled(asked, wish)
    if plan is not None:
        assert check(asked, plan).feasible
        assert brute_force(instance).objective is not None


def test_solve_mends_its_hint_and_says_what_moved() -> None:
    """The hint does not fit; the outcome tells the least that was found to move."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    asked = replace(instance, max_moved_bytes=2)
    outcome = solve(asked, "auto", Settings(time_limit=5, hint=there))
    assert outcome.detail["settled"] == {"tables": 1, "bytes": 2}
    assert outcome.status == "optimal" and outcome.objective == 9
    assert brute_force(asked).objective == 9


@pytest.mark.parametrize("objective", ["total", "busiest_rank"])
def test_a_plan_that_fits_is_improved_within_the_limit(objective: str) -> None:
    """Without multipliers too: of three tables with a cheaper option, one may move."""
    tables = [{name: at(ANY, cost, hbm=1, move_bytes=1) for name, cost in (("dear", dear),
               ("cheap", 1))} for dear in (10, 20, 10)]  # fmt: skip
    current = [Current(t, 2 * t, ((t,),)) for t in range(3)]
    limited = {"current": current, "max_moved_tables": 1}
    instance = built(tables, objective, [range(3)], hbm=9, **limited)
    there = placed([0, 2, 4], [0], [1], [2])
    assert settled(instance, there, improve=False) is there
    plan = settled(instance, there)
    assert plan is not None and check(instance, plan).feasible
    most = {"total": 31, "busiest_rank": 10}  # of 40 and 20
    assert check(instance, plan).objectives[objective] <= most[objective]


@pytest.mark.parametrize(("most", "bytes_"), [(12, {0}), (8, {4, 5, 7}), (7, {5, 7}), (6, None)])
def test_a_cost_is_reached_with_few_moves(most: int, bytes_: set[int] | None) -> None:
    """Rank 0 holds 5 + 4 + 3. Nothing moves where that is cheap enough; for 8 at least 4 bytes
    must, for 7 at least 5, and 6 is less than any plan costs."""
    instance, there = tables_on([0, 0, 0], [5, 4, 3], 20)
    plan = nearest(instance, there, most)
    if bytes_ is None:
        assert plan is None
        return
    assert plan is not None and bytes_of(instance, plan) in bytes_
    verdict = check(instance, plan)
    assert verdict.feasible and verdict.objectives["step_time"] <= most


def test_a_plan_that_costs_nothing_is_near_enough() -> None:
    """Where only capacities matter, the earlier plan is the answer at any cost."""
    instance, there = tables_on([0], [0], 9)
    assert nearest(instance, there, 0) is there


def test_no_limit_is_forgotten_while_a_cost_is_sought() -> None:
    """Three bytes may move, and that is not enough for a cost of 8."""
    instance, there = tables_on([0, 0, 0], [5, 4, 3], 20)
    assert nearest(replace(instance, max_moved_bytes=3), there, 8) is None
    plan = nearest(replace(instance, max_moved_bytes=4), there, 8)
    assert plan is not None and bytes_of(instance, plan) == 4


def test_another_text_place_or_time_is_compiled_anew(tmp_path: Path) -> None:
    """A change in any file changes the folder, and so does the same text elsewhere or later."""
    one, two, kept = tmp_path / "one.py", tmp_path / "two.py", tmp_path / "kept"
    one.write_text("a = 1\n")
    two.write_text("b = 1\n")
    before = module.folder_for([one, two], kept)
    assert module.folder_for([one, two], kept) == before and before.parent == kept
    os.utime(two, (1, 1))
    later = module.folder_for([one, two], kept)
    two.write_text("b = 2\n")
    os.utime(two, (1, 1))
    other = module.folder_for([one, two], kept)
    elsewhere = shutil.copy2(two, tmp_path / "three.py")
    assert len({before, later, other, module.folder_for([one, Path(elsewhere)], kept)}) == 4


def test_only_folders_that_nobody_uses_go(tmp_path: Path) -> None:
    """Another version may still be in use; what is no folder of loops stays in any case."""
    for name, days in (("loops-own", 100), ("loops-other", 1), ("loops-old", 100), ("plans", 100)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - 86_400 * days,) * 2)
    module.used(tmp_path / "loops-own" / "complete")
    assert {path.name for path in tmp_path.iterdir()} == {"loops-own", "loops-other", "plans"}
    assert time.time() - (tmp_path / "loops-own").stat().st_mtime < 1000


def test_nothing_is_kept_beside_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops go to the user's cache folder, or where the caller wants Numba's; without a place that
    can be written, Numba chooses."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = module.loops_folder()
    assert folder is not None and folder.parent == tmp_path / "milp-planner"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    chosen = module.loops_folder()
    assert chosen is not None and chosen.parent == tmp_path / "chosen"
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert module.loops_folder() is None and module.mark() is None


def test_loops_are_kept_in_the_folder_and_nothing_else_is() -> None:
    """Compiled loops lie there once they are loaded; Numba's setting is as it was."""
    folder = compiled._FOLDER
    assert folder is None or any(folder.rglob("annealing.*.nbi"))
    assert folder is None or str(folder) != config.CACHE_DIR


def test_loaded_loops_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark lies in their folder, and another Numba has another one."""
    loops.load()
    complete = module.mark()
    assert complete is None or (complete.is_file() and complete.parent == module.loops_folder())
    monkeypatch.setattr(module, "version", lambda name: "0.1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    other = module.mark()
    assert other is not None and not other.exists() and tmp_path in other.parents
