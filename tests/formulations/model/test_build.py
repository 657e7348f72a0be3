"""The one model against brute force: exact over ranks, a relaxation over anything coarser.

Linear models: names, matrices, objectives.
"""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.cpsat import Found
from formulations.instance import Instance
from formulations.model.build import build
from formulations.model.linear import LinearModel
from formulations.model.partition import by_class, by_machine, by_rank
from formulations.model.parts import Parts
from formulations.model.placements import decode, encode
from formulations.result.check import check
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, at, built
from tests.formulations.model.solved import broken_rows, pooled, solved
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
COARSE = st.sampled_from([by_class, by_machine, pooled])


@LOOSE
@given(instances(), st.booleans(), st.booleans())
def test_over_ranks_it_is_exact(instance: Instance, ordered: bool, cuts: bool) -> None:
    """Status, objective and bound are the oracle's, with rank order and cuts or without; a plan's
    values cost what it costs and give it back, and satisfy every row but for the order."""
    truth = brute_force(instance)
    model, answer = solved(instance, parts=Parts(ordered=ordered, cuts=cuts))
    if truth.objective is None:
        assert answer.status == Found.INFEASIBLE
        return
    assert answer.status == Found.OPTIMAL
    assert answer.value == answer.bound == truth.objective
    assert answer.values is not None
    verdict = check(instance, decode(model, answer.values))
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == truth.objective
    assert truth.placement is not None
    values = encode(model, truth.placement)
    assert values is not None and model.linear.value(values) == truth.objective
    assert {row[0] for row in broken_rows(model, values)} <= {"order"}
    assert ordered or broken_rows(model, values) == []
    again = encode(model, decode(model, values))
    assert again is not None and again.tolist() == values.tolist()


@LOOSE
@given(instances(), COARSE, st.booleans())
def test_over_coarser_cells_it_is_a_relaxation(
    instance: Instance, coarse: object, cuts: bool
) -> None:
    """The oracle's plan satisfies every row at no greater cost; the optimum is no higher."""
    truth = brute_force(instance)
    if truth.placement is None or truth.objective is None:
        return
    model, answer = solved(instance, coarse(instance), Parts(cuts=cuts))  # type: ignore[operator]
    values = encode(model, truth.placement)
    assert values is not None and broken_rows(model, values) == []
    assert model.linear.value(values) <= truth.objective
    assert answer.status == Found.OPTIMAL and answer.value is not None
    assert answer.value <= truth.objective


@LOOSE
@given(instances(), COARSE, st.integers(0, 2))
def test_a_limit_keeps_the_plans_within_it(instance: Instance, coarse: object, more: int) -> None:
    """A limit at the optimum or above keeps it, over ranks or coarser; one below leaves no plan."""
    truth = brute_force(instance)
    if truth.objective is None:
        return
    limit = truth.objective + more
    _, exact = solved(instance, parts=Parts(limit=limit))
    assert (exact.status, exact.value) == (Found.OPTIMAL, truth.objective)
    _, answer = solved(instance, coarse(instance), Parts(limit=limit))  # type: ignore[operator]
    assert answer.value is not None and answer.value <= truth.objective
    _, none = solved(instance, parts=Parts(limit=truth.objective - 1))
    assert none.status == Found.INFEASIBLE


def two_machines() -> Instance:
    """Three tables of 6 and cost 4 on two machines of one rank with 12 each."""
    return built([at(ANY, 4, hbm=6)] * 3, machines=[[0], [1]], hbm=12)


def test_pooling_by_hand() -> None:
    """Costs 4 + 4 + 4 over two ranks: 6 with ranks pooled, 8 when they are told apart."""
    instance = two_machines()
    assert solved(instance, pooled(instance), Parts(cuts=False))[1].value == 6
    assert solved(instance, by_rank(instance))[1].value == 8


def test_rows_say_what_they_limit() -> None:
    """Every row has a name of its own, by which a certificate's multipliers refer to it."""
    model, _ = solved(two_machines())
    names = [model.linear.name(r) for r in range(model.linear.num_rows)]
    assert len(set(names)) == len(names)
    assert [name for name in names if name[0] == "option"] == [("option", t) for t in range(3)]
    assert {("peak", "all", 0), ("capacity", "hbm", 0), ("capacity", "hbm", 1)} <= set(names)
    assert ("largest", "peak", "all", 1, 0) in names


def test_no_table_to_choose_for() -> None:
    """A part without tables gives a model without choices, even if its empty array holds floats."""
    instance = built([at(ANY, 1, hbm=9)], machines=[[0]], hbm=5)
    model = build(instance, by_rank(instance), Parts(tables=np.asarray([])))
    assert len(model.columns.candidates.table) == 0


def test_rows_keep_their_names_and_columns_stand_once() -> None:
    """Bulk and single rows keep order and names; a column named twice in a row is added up."""
    model = LinearModel()
    model.columns(3, upper=5)
    none = np.empty(0, dtype=np.int64)
    model.rows(("none",), none, (none, none, none))
    assert model.num_rows == 0
    entries = (np.asarray([1, 0, 0]), np.asarray([2, 1, 0]), np.asarray([7, 8, 9]))
    model.rows(("many",), np.asarray([4, 6]), entries, low=np.asarray([1, 2]), high=3)
    model.row(("one", "x"), [0, 2, 0], [1, 5, 1], high=4)
    matrix = model.matrix()
    assert matrix.start.tolist() == [0, 2, 3, 5]
    assert matrix.column.tolist() == [0, 1, 2, 0, 2]
    assert matrix.coefficient.tolist() == [9, 8, 7, 2, 5]
    assert matrix.low[:2].tolist() == [1, 2] and matrix.high.tolist() == [3, 3, 4]
    assert [model.name(r) for r in range(3)] == [("many", 4), ("many", 6), ("one", "x")]


def test_columns_are_held_at_zero() -> None:
    """A forbidden column stays at 0 when columns are added later."""
    model = LinearModel()
    first = model.columns(2, upper=np.asarray([3, 4]))
    model.forbid(first[:1])
    model.columns(1, upper=9)
    assert model.upper.tolist() == [0, 4, 9]


def test_the_objective_has_an_offset() -> None:
    """The objective's value is cost plus offset."""
    model = LinearModel()
    columns = model.columns(2, upper=9)
    model.minimise(columns, [2, 3], offset=100)
    assert model.value(np.asarray([4, 5])) == 123
