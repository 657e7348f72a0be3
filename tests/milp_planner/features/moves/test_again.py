"""Re-planning in Python: ``Plan.replan`` and its limits."""

import json
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from formulations import InstanceError
from formulations.baselines.greedy import starting_plan
from formulations.result.check import moved_bytes, moved_tables
from formulations.result.outcome import StoppedBy, found
from milp_planner import Cluster, Model, Plan, compare, plan, read_plan, verify
from milp_planner.errors import BadInput
from milp_planner.features.moves.again import Moves
from milp_planner.features.plan.verdict import verdict_of
from milp_planner.plans.moving import parse_price
from scenarios.catalog import find_cluster
from scenarios.generator import generate
from tests.milp_planner.features.small import MODEL, cluster

COUNTED: dict[str, Any] = {"time_limit": 900, "work_limit": 3, "workers": 1}


@pytest.fixture(scope="module")
def before() -> Plan:
    """A proved plan on two ranks; of several optima, always the same."""
    return plan(MODEL, cluster(), **COUNTED)


def rows(**more: int) -> Model:
    """The small model with other numbers of rows."""
    data: dict[str, Any] = MODEL.to_dict()
    for table in data["tables"]:
        table["rows"] = more.get(table["name"], table["rows"])
    return Model.from_dict(data)


def moved(again: Plan) -> tuple[int, int]:
    """The tables and bytes that moved."""
    placement = again.outcome.placement
    assert placement is not None
    tables = moved_tables(again.instance, placement)
    return len(tables), moved_bytes(again.instance, placement, tables)


def test_the_same_again(before: Plan) -> None:
    """No move, the same objective, certified."""
    again = before.replan(time_limit=10)
    assert moved(again) == (0, 0)
    assert again.outcome.objective == before.outcome.objective
    assert again.outcome.certified_bound == again.outcome.objective


@pytest.mark.parametrize("most", [0, 1, Moves(bytes=0), Moves(share=0.3)])
def test_limits_hold(before: Plan, most: Moves | int) -> None:
    """A limit in tables, in bytes, or as a share of these; the plan verifies as the answer to that
    question."""
    again = before.replan(model=rows(items=4_000_000), max_moved=most, time_limit=10)
    tables, size = moved(again)
    limit = again.instance.max_moved_bytes
    assert tables <= (most if isinstance(most, int) else 4)
    assert limit is None or size <= limit
    assert verify(again).ok


def test_what_may_not_move_enough_is_refused(before: Plan) -> None:
    """With a rank less something must move; if no move is allowed, that is proved infeasible."""
    again = before.replan(cluster=cluster(1, hbm="1MiB", ddr="4MiB"), max_moved=0, time_limit=10)
    assert again.status == "infeasible"


def test_contradictions(before: Plan) -> None:
    """Two plans to start from, or limits without a plan."""
    with pytest.raises(BadInput, match="give only one"):
        plan(MODEL, cluster(), before=before, today=before)
    with pytest.raises(BadInput, match="goes with start"):
        plan(MODEL, cluster(), max_moved=3)
    with pytest.raises(BadInput, match="max_moved"):
        Moves(share=1.5)


@pytest.fixture(scope="module")
def uneven() -> Plan:
    """A plan with all whole tables on rank 0, so that moving some pays."""
    data: dict[str, Any] = MODEL.to_dict()
    limits = {"sharding_types": ["table_wise"], "modes": ["HBM_ONLY"]}
    for table in data["tables"]:
        table["constraints"] = limits | {"ranks": [0]}
        if table.get("kind") == "dynamicemb":
            table["constraints"] = {"modes": ["HBM_ONLY"]}
    return plan(Model.from_dict(data), cluster(), time_limit=10)


def freed(uneven: Plan) -> Model:
    """The same model, whose tables may now be on either rank."""
    data: dict[str, Any] = uneven.model.to_dict()
    for table in data["tables"]:
        if table["constraints"].get("ranks"):
            table["constraints"] = {**table["constraints"], "ranks": None}
    return Model.from_dict(data)


def test_too_few_moves_are_answered_with_what_must_move(uneven: Plan, tmp_path: Path) -> None:
    """Rank 0 is too full for all whole tables on it: what must move is certified, also in the file,
    and told beside what was found to suffice; within that there is a plan."""
    model, smaller = freed(uneven), cluster(hbm="1700MiB")
    again = uneven.replan(model=model, cluster=smaller, max_moved=Moves(bytes=1), time_limit=10)
    verdict = verdict_of(again.instance, again.outcome)
    assert verdict.standing == "certified infeasible"
    assert "must move, 1 B may; the least found that suffices" in verdict.forced[0]
    again.save(tmp_path / "again.json")
    judged = verify(tmp_path / "again.json")
    assert judged.ok and not [claim for claim in judged.claims if claim.ok is None]
    enough = Moves(bytes=again.outcome.detail["would_move"]["bytes"])
    assert f"({enough.bytes} B)" in verdict.forced[0]
    assert uneven.replan(model=model, cluster=smaller, max_moved=enough, time_limit=10).tables


def test_a_price_on_moves(uneven: Plan) -> None:
    """At a high price nothing moves, at a low one what pays; the sum is the least of all plans."""
    model = freed(uneven)
    free = plan(model, cluster(), time_limit=10)
    assert free.outcome.objective is not None and uneven.outcome.objective is not None
    gain = uneven.outcome.objective - free.outcome.objective
    assert gain > 0
    cheap = uneven.replan(model=model, move_cost=Fraction(1, 10**6), time_limit=10)
    dear = uneven.replan(model=model, move_cost="1s/MB", time_limit=10)
    assert moved(dear) == (0, 0) and dear.outcome.objective == uneven.outcome.objective
    assert cheap.outcome.objective == free.outcome.objective and moved(cheap)[0] == 1
    for again in (cheap, dear):
        assert again.moving is not None and again.outcome.objective is not None
        sum_ = again.moving.outcome.objective
        paid = moved(again)[1] * again.moving.price
        assert sum_ is not None and 0 <= sum_ - again.outcome.objective - paid < 4
        assert again.moving.outcome.certified_bound == sum_
        assert [c for c in verify(again).claims if c.ok is False] == [] and verify(again).ok


def test_a_price_on_moves_in_a_file(uneven: Plan, tmp_path: Path) -> None:
    """The file is read back and verified, refuted with changed figures, price or placement."""
    again = uneven.replan(model=freed(uneven), move_cost="1ns/GB", time_limit=10)
    path = again.save(tmp_path / "plan.json")
    read = read_plan(path)
    assert read.moving is not None and again.moving is not None
    assert read.moving.outcome.objective == again.moving.outcome.objective
    assert verify(path).ok
    document = json.loads(path.read_text())
    for change in (
        {"picoseconds_a_byte": "1"},
        {"outcome": {**document["moving"]["outcome"], "objective": 1}},
    ):
        path.write_text(json.dumps({**document, "moving": {**document["moving"], **change}}))
        try:
            assert not verify(path).ok
        except (BadInput, InstanceError):  # it belongs to another instance or contradicts itself
            continue
    path.write_text(json.dumps({**document, "moving": {"picoseconds_a_byte": "x", "outcome": {}}}))
    with pytest.raises(BadInput, match="picoseconds_a_byte"):
        read_plan(path)


@pytest.mark.parametrize("text", ["1", "1ms", "ms/GB", "1ms/0GB", "1ms/parsec", "-1ms/GB", "1/GB"])
def test_prices_that_are_none(text: str) -> None:
    """Invalid prices get one sentence with what is allowed."""
    with pytest.raises(BadInput, match="move cost"):
        parse_price(text)


def test_prices() -> None:
    """Prices may use any unit of time and size."""
    assert parse_price("1ms/GB") == 1
    assert parse_price("0.5us/MiB") == Fraction(500_000, 2**20)
    assert parse_price("3 s / 2 TB") == Fraction(3, 2)


def test_the_earlier_certificate_is_not_lost(before: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the same tables and ranks, a re-plan that proves nothing itself certifies as much as the
    plan it starts from; of other tables the certificate says nothing."""
    monkeypatch.setattr(import_module("formulations.solve"), "_with_proof", unproved)
    again = before.replan(**COUNTED)
    assert again.outcome.certified_bound == before.outcome.certified_bound
    assert again.outcome.certified_bound is not None and verify(again).ok
    other = before.replan(model=rows(items=4_000_000), **COUNTED)
    assert other.outcome.certified_bound is None


def unproved(instance: Any, chosen: Any, settings: Any, clock: Any) -> Any:
    """An outcome without a bound."""
    plan = starting_plan(instance, settings, clock)
    assert plan is not None
    return found(instance, "auto", plan, StoppedBy.TIME_LIMIT)


@pytest.fixture(scope="module")
def crowded() -> tuple[Model, Cluster, Plan]:
    """Forty tables on eight ranks after a night, and the plan of the evening, which is not proved
    to be the best one."""
    place = find_cluster("8xh100")
    evening = generate(40, seed=3)
    data = evening.to_dict()
    for table in data["tables"][::8]:
        table["rows"] = round(1.3 * table["rows"])
    data["tables"].append({**data["tables"][0], "name": "new"})
    return Model.from_dict(data), place, plan(evening, place, **COUNTED)


@pytest.mark.slow
def test_all_ways_of_asking_certify_the_same(
    crowded: tuple[Model, Cluster, Plan], tmp_path: Path
) -> None:
    """``plan`` and ``compare`` certify one bound in the same work; ``plan --from`` the plan before
    that or a better one; and through a cache each has the best of all."""
    _, place, before = crowded
    model, bound = before.model, before.outcome.certified_bound or 0
    assert 0 < bound < (before.outcome.objective or 0)
    kept = {**COUNTED, "cache": tmp_path}
    rows = compare(model, place, formulations=["auto"], objectives=["step_time"], **kept).rows
    assert [row.outcome.certified_bound for row in rows if row.outcome] == [bound]
    again = plan(model, place, start=before, **kept)
    assert (again.outcome.certified_bound or 0) >= bound
    last = plan(model, place, **kept)
    assert (last.outcome.certified_bound or 0) >= (again.outcome.certified_bound or 0)


@pytest.mark.slow
def test_without_a_limit_on_moves_a_plan_is_no_dearer(
    crowded: tuple[Model, Cluster, Plan],
) -> None:
    """Than within one, in the same work, but for what chance in the search makes of it; what few
    moves give up of it is told apart."""
    model, place, before = crowded
    free = plan(model, place, start=before, **COUNTED).outcome
    best = free.before_goals or free.objective or 0
    for share in (0.05, 0.2):
        held = plan(model, place, start=before, max_moved=Moves(share=share), **COUNTED).outcome
        assert held.objective is None or best <= 1.0005 * (held.before_goals or held.objective)
