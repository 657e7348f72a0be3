"""The tree of cases: what it removes is in no plan, and it never closes if a plan exists."""

import threading
import time
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings

from formulations.instance import Instance
from formulations.proof.build import build_rows
from formulations.proof.relaxation import Relaxation
from formulations.proof.rows import Rows
from formulations.proof.tree import Effort, Tree, bare, empty_table, forced_sums, swept
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import four_tables
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def tree(rows: Rows, limit: int | None, nodes: float = 200) -> Tree:
    """A tree that may split so many cases, run to its end."""
    found = Tree(rows, Relaxation(rows, 10), limit, Effort(float("inf"), None, nodes))
    found.run()
    return found


def best_with(instance: Instance, option: int) -> int | None:
    """The optimum among plans that use an option."""
    table = int(instance.table_of[option])
    others = [(table, o) for o in instance.options_of(table) if o != option]
    return brute_force(replace(instance, forbidden=(*instance.forbidden, *others))).objective


@LOOSE
@given(instances(max_combinations=3000))
def test_the_bare_rule_keeps_what_a_plan_may_use(instance: Instance) -> None:
    """With the optimum as the limit, an option that the bare rule removes is in no optimal plan."""
    best = brute_force(instance).objective
    rows = build_rows(instance)
    left = bare(rows, rows.possible.copy(), best)
    if best is None:
        return
    for option in np.flatnonzero(instance.allowed & ~left):
        value = best_with(instance, int(option))
        assert value is None or value > best


@LOOSE
@given(instances())
def test_it_never_closes_at_the_optimum(instance: Instance) -> None:
    """The tree closes neither at the optimum, nor without a limit where a plan exists."""
    best = brute_force(instance).objective
    if best is None or not instance.num_tables:
        return
    for limit in (best, None):
        assert not tree(build_rows(instance), limit).closed


def test_it_closes_just_below_the_optimum() -> None:
    """The example of docs/proof.md costs 22: 21 is refuted in more cases than one, 22 is not."""
    rows = build_rows(four_tables())
    below, at = tree(rows, 21), tree(rows, 22)
    assert below.closed and below.nodes > 0 and below.leaves() == []
    assert not at.closed and at.leaves()


def test_effort_ends_it() -> None:
    """No more cases, no more time, or a flag: the tree stays open."""
    rows, stop = build_rows(four_tables()), threading.Event()
    stop.set()
    late = time.monotonic() - 1
    for effort in (Effort(float("inf"), None, 0), Effort(late, None), Effort(float("inf"), stop)):
        assert effort.over()
        found = Tree(rows, Relaxation(rows, 10), 21, effort)
        found.run()
        assert not found.closed
    assert not Effort(float("inf"), threading.Event()).over()


def test_sums_with_an_option_forced() -> None:
    """Prices 3 or 5, 4 or 7, and 0 for the other two tables: least 3 + 4; forcing 7 makes it 10."""
    rows = build_rows(four_tables())
    keep = np.ones(8, dtype=bool)
    prices = np.asarray([3, 5, 4, 7, 0, 0, 0, 0], dtype=object)
    forced, total = forced_sums(rows, keep, prices)
    assert total == 7 and forced.tolist() == [7, 9, 7, 10, 7, 7, 7, 7]
    left, least = swept(rows, keep, prices, 9)
    assert least == 7 and left.tolist() == [True, True, True, False, True, True, True, True]
    keep[:2] = False
    assert empty_table(rows, keep)
    assert forced_sums(rows, keep, prices)[1] == float("inf")
    assert not swept(rows, keep, prices, 10**9)[0].any()
