"""Choices of options for plans to start from, and the program that keeps machines apart."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tries

from formulations.clock import Limits
from formulations.evidence.certify import CERTIFICATE
from formulations.instance import Instance
from formulations.proof.prove import symmetric_lp
from formulations.result.placement import Placement
from formulations.search import context as context_of
from formulations.search.anneal import Choice
from formulations.search.bounds import Bounds
from formulations.search.prover import Prover
from formulations.search.question import APART, ask, with_room
from formulations.search.whole import Whole
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, INSIDE, MACHINE, MACHINES, at, built
from tests.formulations.search.searches import noted, opened
from tests.formulations.strategies import instances

LOOSE = tries(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def four_tables() -> Instance:
    """A rank for each, which the cheaper option fills to 995 of 1,000 bytes."""
    table = {"full": at(ANY, 1000, hbm=995), "half": at(ANY, 1010, hbm=500)}
    return built([table] * 4, machines=MACHINES, hbm=1000, ddr=50)


def chosen(plan: int | None) -> list[list[int]]:
    """Positions of the options that starts have; with a plan, it has this option of all tables."""
    found = list[Choice]()
    context = opened(four_tables(), time_limit=30, options={"small_columns": 0, "margin": 0.0})
    context.lift(100, CERTIFICATE)
    if plan is not None:
        on_each = [[np.asarray([rank])] for rank in range(4)]
        assert context.offer(Placement(2 * np.arange(4) + plan, on_each), "test")
    bounds = Bounds(context, Whole(context), found.append, found.append)
    while bounds.start_with_room(10.0):
        pass
    return [(choice.options % 2).tolist() for choice in found]


@pytest.mark.parametrize(
    ("plan", "found"),
    [(None, [[1, 1, 1, 1]] * 3 + [[0, 0, 0, 0]]), (1, [[0, 0, 0, 0]]), (0, [])],
)
def test_room_becomes_less_where_it_may_pay(plan: int | None, found: list[list[int]]) -> None:
    """Turn by turn; what costs more than the best plan is none."""
    assert chosen(plan) == found


@pytest.mark.parametrize(("bound", "alone"), [(1500, False), (1900, True)])
def test_the_exact_model_leaves_its_side_where_the_plan_is_far_above(
    bound: int, alone: bool
) -> None:
    """After its share of the time, on a small instance; before, and near the bound, it stays."""
    context = opened(four_tables(), time_limit=None, work_limit=10.0, workers=1)
    context.lift(bound, CERTIFICATE)
    whole = Whole(context)
    on_two = [[np.asarray([rank])] for rank in (0, 0, 1, 1)]
    assert context.offer(Placement(np.asarray([1, 3, 5, 7]), on_two), "test")
    assert not whole.give_up()
    context.clock.spend(2.1)
    assert whole.first  # asking changes nothing
    assert whole.give_up() is not alone
    assert whole.first is alone


@LOOSE
@given(instances())
def test_questions_close_in_on_the_program_that_keeps_machines_apart(instance: Instance) -> None:
    """Asked for less and less, from a plan far above: what is said never exceeds brute force, and
    ends where that program's optimum is."""
    truth = brute_force(instance)
    if truth.placement is None or truth.objective is None or not instance.num_tables:
        return
    context = opened(instance, work_limit=100.0, workers=1)
    context.lift(min(0, truth.objective) - 10 * abs(truth.objective) - 10, CERTIFICATE)
    assert context.offer(truth.placement, "test")
    found = list[Choice]()
    bounds = Bounds(context, Whole(context), found.append, found.append)
    for _ in range(40):
        if context.known.proved or not bounds.machines(1.0):
            break
    alone = ask(APART, instance, Limits(seconds=10)).bound
    assert alone is not None
    assert context.bound is not None
    assert alone <= context.bound <= truth.objective
    values = [choice.value for choice in found if choice.value is not None]
    assert len(values) == len(found)
    assert values == sorted(set(values), reverse=True)


def test_room_is_taken_from_shards_that_choose_their_rank() -> None:
    """Even shards use what they use; machines keep their room, where shards need not be packed."""
    table = {w.name: at(w, 1, hbm=100, ddr=10) for w in (ANY, INSIDE, MACHINE, EVERY)}
    instance = built([table], machines=MACHINES, hbm=1000, ddr=50)
    roomy = with_room(instance, 0.5, 0.01)
    assert roomy.shard_use.tolist() == [[150, 10], [150, 10], [100, 10], [100, 10]]
    assert [each.capacity.tolist() for each in roomy.resources] == [[990] * 4, [50] * 2]
    none = with_room(instance, 1e12, 2.0)  # whatever is asked, numbers stay numbers
    assert none.shard_use[:, 0].tolist() == [1001, 1001, 100, 100]
    assert none.resources[0].capacity.tolist() == [0] * 4


def test_the_certificate_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second side has it checked before the end; who writes the outcome knows the answer."""
    asked = noted(monkeypatch, context_of, "accepted")
    instance = four_tables()
    context = opened(instance, time_limit=30)
    lp = symmetric_lp(instance, None)
    assert lp is not None and lp.certificate is not None
    context.state.price(lp.certificate)
    Prover(context, Whole(context)).last_word()
    assert context.accepts(instance, lp.certificate)
    assert [certificate for _, certificate, *_ in asked] == [lp.certificate]
