"""The conductor takes over what an earlier search reached."""

from __future__ import annotations

import numpy as np
import pytest

from formulations import Settings
from formulations.clock import Clock
from formulations.conduct import conductor
from formulations.conduct.conductor import conduct
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.result.outcome import BoundSource, Outcome, Status, StoppedBy, found
from formulations.result.placement import Placement


def three_on_two() -> Instance:
    """Tables of cost 4, 3 and 3 on two ranks: 6 is the best, 5 the mean."""
    builder = InstanceBuilder([[0, 1]], ["p"], [], "busiest_rank")
    for name, cost in (("a", 4), ("b", 3), ("c", 3)):
        builder.add_table(name)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [cost])])])
    return builder.build()


def before(instance: Instance, bound: int) -> Outcome:
    """Everything on rank 0, under a bound."""
    plan = Placement(np.arange(3), [[np.asarray([0])] for _ in range(3)])
    source = BoundSource("told before", exact=True)
    return found(instance, "scale", plan, StoppedBy.TIME_LIMIT, bound, source)


def asked(instance: Instance, earlier: Outcome | None) -> Outcome:
    """What the conductor answers with its search left out."""
    hint = None if earlier is None else earlier.placement
    settings = Settings(time_limit=None, work_limit=20.0, workers=1, hint=hint)
    return conduct(instance, settings, Clock(settings), "auto", earlier)


def test_an_earlier_bound_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what the outcome says where the search finds nothing, with its source."""
    monkeypatch.setattr(conductor, "_search", lambda context, plans: None)
    instance = three_on_two()
    outcome = asked(instance, before(instance, 6))
    assert outcome.bound == 6 and outcome.bound_source is not None
    assert outcome.bound_source.method == "told before"
    assert asked(instance, None).bound is None


def test_an_earlier_plan_is_improved() -> None:
    """From ten on one rank to six, proved."""
    instance = three_on_two()
    earlier = before(instance, 5)
    assert earlier.objective == 10
    outcome = asked(instance, earlier)
    assert (outcome.status, outcome.objective, outcome.bound) == (Status.OPTIMAL, 6, 6)
