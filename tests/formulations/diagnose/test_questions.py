"""The diagnostic instances: their brute-force optimum is the answer they stand for."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance, Scope
from formulations.diagnose.questions import (
    constraints_of,
    droppable,
    lendable,
    lift,
    only,
    use_as_cost,
)
from formulations.instance_file import instance_from_dict, instance_to_dict
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import two_modes
from tests.formulations.strategies import instances

small = instances(max_tables=3, max_combinations=400, constraints=False)


def fits(document: dict[str, object]) -> bool:
    """Whether brute force finds a plan."""
    return brute_force(instance_from_dict(document)).objective is not None


def least_by_trying(instance: Instance, resource: int, most: int) -> int | None:
    """The smallest uniform capacity with a plan, found by trying every one."""
    document = instance_to_dict(instance)
    for capacity in range(most + 1):
        document["resources"][resource]["capacity"] = capacity
        if fits(document):
            return capacity
    return None


@given(small, st.data())
@settings(max_examples=40, deadline=None)
def test_least_capacity_questions(instance: Instance, data: st.DataObject) -> None:
    """Both capacity questions have the optimum that trying every capacity finds."""
    if not instance.resources:
        return
    index = data.draw(st.integers(0, len(instance.resources) - 1))
    resource = instance.resources[index]
    most = 31
    truth = least_by_trying(instance, index, most)
    document = instance_to_dict(instance)
    lent = brute_force(instance_from_dict(lendable(document, [resource.name], most))).objective
    assert lent == truth
    if resource.scope == Scope.RANK and truth is not None:
        asked = instance_from_dict(use_as_cost(document, [resource.name]))
        assert brute_force(asked).objective == truth


@given(small)
@settings(max_examples=40, deadline=None)
def test_fewest_drops_question(instance: Instance) -> None:
    """The optimum of the droppable instance is the smallest set whose removal leaves a plan."""
    document = instance_to_dict(instance)
    asked = brute_force(instance_from_dict(droppable(document))).objective
    names = set(instance.table_names)
    truth = next(
        size
        for size in range(len(names) + 1)
        if any(fits(only(document, names - set(d))) for d in combinations(sorted(names), size))
    )
    assert asked == truth


def test_lifting_names_and_removes_one_constraint() -> None:
    """Every constraint of an instance can be lifted by the name it is listed under."""
    document = instance_to_dict(two_modes(hbm=3, ddr=100))
    assert constraints_of(document) == ["hbm", "ddr"]
    assert not fits(document)
    assert fits(lift(document, "hbm"))
    assert not fits(lift(document, "ddr"))


def test_restricting_drops_constraints_on_absent_tables() -> None:
    """Pins and the current plan of tables left out fall away, so the rest stays valid."""
    document = instance_to_dict(two_modes())
    document["pins"] = [{"table": "a", "option": "HYBRID"}]
    document["current"] = {"a": {"option": "HYBRID", "ranks": [[0]]}}
    document["max_moved_tables"] = 0
    rest = only(document, ["b"])
    assert rest["pins"] == [] and "max_moved_tables" not in rest
    assert instance_from_dict(rest).table_names == ("b",)
