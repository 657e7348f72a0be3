"""The bound from rank patterns never exceeds brute force, and sees what pooled places cannot."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations import Block, Instance, InstanceBuilder, Shard, Where
from formulations.aggregate.cpsat import Limits
from formulations.aggregate.model import AggregateSettings
from formulations.bounds.own import usable
from formulations.bounds.patterns import pattern_bound, worth_trying
from formulations.bounds.pooled import exact_pooled_ip
from formulations.bounds.rank_items import (
    RankClass,
    RankItems,
    best_pattern,
    rank_classes,
    rank_items,
)
from formulations.instance import IntArray, Objective
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
LIMITS = Limits(seconds=20)


def clashing() -> Instance:
    """Three shards clash in memory, two in cost, and two suit neither; four ranks of ten."""
    shards = [(6, 3)] * 3 + [(3, 6)] + [(5, 5)] * 2
    builder = InstanceBuilder([[0, 1, 2, 3]], ["p"], [("hbm", "rank", 10)], Objective.BUSIEST_RANK)
    for index, (use, cost) in enumerate(shards):
        builder.add_table(f"t{index}")
        builder.add_option("whole", [Block(Where.ANY_RANK, [Shard({"hbm": use}, [cost])])])
    return builder.build()


@LOOSE
@given(instances(), st.integers(0, 5))
def test_never_above_brute_force(instance: Instance, below: int) -> None:
    """Whatever range it is asked to search, a plan of that cost exists for no smaller target."""
    truth = brute_force(instance).objective
    upper = 60 if truth is None else truth + below
    found = pattern_bound(instance, max(0, upper - 12), upper, LIMITS)
    assert found.bound is None or found.bound <= upper
    if truth is not None:
        assert found.bound is None or found.bound <= truth
    if instance.objective == Objective.TOTAL:
        assert found.ended == "none"


@LOOSE
@given(instances(objectives=[Objective.BUSIEST_RANK]), st.data())
def test_best_pattern(instance: Instance, data: st.DataObject) -> None:
    """The best-paid handful is that of enumerating every handful."""
    items = rank_items(instance, usable(instance))
    kind = rank_classes(instance)[0]
    price = np.asarray([data.draw(st.integers(0, 9)) for _ in range(items.number)], dtype=np.int64)
    target = data.draw(st.integers(0, 20))
    if items.number > 7:
        return
    answer = best_pattern(items, kind, target, price, LIMITS)
    assert answer is not None
    assert answer.most == price @ answer.held
    assert answer.most == _enumerated(items, kind, target, price)


def _enumerated(items: RankItems, kind: RankClass, target: int, price: IntArray) -> int:
    handfuls = itertools.product(*(range(int(m) + 1) for m in items.most))
    held = [np.asarray(counts, dtype=np.int64) for counts in handfuls]
    return max(int(price @ h) for h in held if _allowed(items, kind, target, h))


def _allowed(items: RankItems, kind: RankClass, target: int, held: IntArray) -> bool:
    """What :func:`best_pattern` says of a handful, read literally."""
    options, tables = set(items.option[held > 0]), set(items.table[held > 0])
    rules = [
        len(options) == len(tables),
        items.cost @ held <= target,
        (held @ items.use <= np.asarray(kind.capacity)).all(),
        (held <= items.count).all(),
        all(
            held[items.block == b].sum() <= m for b, m in zip(items.block, items.most, strict=True)
        ),
    ]
    return all(map(bool, rules))


def test_sees_clashes_that_pooling_does_not() -> None:
    """Memory forbids one pair and cost another: patterns prove the optimum, pooled rows do not."""
    instance = clashing()
    optimum = brute_force(instance).objective
    assert optimum is not None
    pooled = exact_pooled_ip(instance, LIMITS, AggregateSettings(upper=optimum)).bound
    found = pattern_bound(instance, 1, optimum, LIMITS)
    assert pooled is not None and pooled < optimum
    assert (found.bound, found.ended) == (optimum, "closed")


def test_a_table_without_options_below_the_target() -> None:
    """With no option kept for a table every plan is ruled out, up to the upper limit."""
    instance = clashing()
    keep = usable(instance)
    keep[0] = False
    assert pattern_bound(instance, 1, 9, LIMITS, keep).bound == 9


def test_stops_when_asked() -> None:
    """A set event, or nothing left, ends the search with nothing claimed beyond what was proved."""
    stop = threading.Event()
    stop.set()
    for limits in (Limits(stop=stop), Limits(seconds=0), Limits(work=0.0)):
        found = pattern_bound(clashing(), 7, 12, limits)
        assert (found.bound, found.ended) == (None, "limit")


def test_worth_trying_where_few_kinds_are_left() -> None:
    """Six shards for four ranks are few; what nobody may place, or a total, has no patterns."""
    instance = clashing()
    assert worth_trying(instance, usable(instance))
    assert not worth_trying(instance, np.zeros(instance.num_options, dtype=bool))
    total = replace(instance, objective=Objective.TOTAL)
    assert not worth_trying(total, usable(total))
