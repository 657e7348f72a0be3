"""The brute-force optimum of each diagnostic instance answers the question that it encodes."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance, Scope
from formulations.diagnose.questions import (
    DROPPED,
    constraints_of,
    droppable,
    lift,
    only,
    use_as_cost,
    with_capacity,
)
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.validate import validate
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import two_modes
from tests.formulations.strategies import instances

small = instances(max_tables=3, max_combinations=400, constraints=False)


def fits(instance: Instance) -> bool:
    """Whether brute force finds a plan."""
    return brute_force(instance).objective is not None


def least_by_trying(instance: Instance, resource: int, most: int) -> int | None:
    """The smallest uniform capacity with a plan, found by trying every one."""
    name = instance.resources[resource].name
    tried = (c for c in range(most + 1) if fits(with_capacity(instance, [name], c)))
    return next(tried, None)


@given(small, st.data())
@settings(max_examples=40, deadline=None)
def test_the_fullest_rank_is_the_least_capacity(instance: Instance, data: st.DataObject) -> None:
    """Of a rank resource, least use has the optimum that trying every capacity finds."""
    if not instance.resources:
        return
    index = data.draw(st.integers(0, len(instance.resources) - 1))
    resource = instance.resources[index]
    most = 31
    truth = least_by_trying(instance, index, most)
    if resource.scope == Scope.RANK and truth is not None:
        asked = use_as_cost(instance, [resource.name])
        validate(asked)
        assert brute_force(asked).objective == truth


@given(small)
@settings(max_examples=40, deadline=None)
def test_fewest_drops_question(instance: Instance) -> None:
    """The droppable instance's optimum is the fewest tables whose removal leaves a plan."""
    question = droppable(instance)
    validate(question)
    asked = brute_force(question).objective
    names = set(instance.table_names)
    truth = next(
        size
        for size in range(len(names) + 1)
        if any(fits(only(instance, names - set(d))) for d in combinations(sorted(names), size))
    )
    assert asked == truth


def test_lifting_names_and_removes_one_constraint() -> None:
    """Every constraint of an instance can be lifted by the name it is listed under."""
    instance = two_modes(hbm=3, ddr=100)
    assert constraints_of(instance) == ["hbm", "ddr"]
    assert not fits(instance)
    assert fits(lift(instance, "hbm"))
    assert not fits(lift(instance, "ddr"))


def test_restricting_drops_constraints_on_absent_tables() -> None:
    """Pins and the current plan of tables left out fall away, so the rest stays valid."""
    document = instance_to_dict(two_modes())
    document["pins"] = [{"table": "a", "option": "HYBRID"}]
    document["current"] = {"a": {"option": "HYBRID", "ranks": [[0]]}}
    document["max_moved_tables"] = 0
    instance = instance_from_dict(document)
    rest = only(instance, ["b"])
    validate(rest)
    assert (rest.pins, rest.current, rest.max_moved_tables) == ((), (), None)
    assert rest.table_names == ("b",)
    both = only(instance, ["a", "b"])
    assert instance_to_dict(both) == instance_to_dict(instance)
    pinned = droppable(instance)
    validate(pinned)
    assert pinned.option_names[pinned.pins[0].option] == "HYBRID"
    assert pinned.option_names[int(pinned.table_options[1]) - 1] == DROPPED


@given(small, st.data())
@settings(max_examples=40, deadline=None)
def test_restricting_equals_writing_less(instance: Instance, data: st.DataObject) -> None:
    """Restricting an instance to some tables equals reading a file with only these tables."""
    names = {name for name in instance.table_names if data.draw(st.booleans())}
    document = instance_to_dict(instance)
    document["tables"] = [t for t in document["tables"] if t["name"] in names]
    found, written = only(instance, names), instance_from_dict(document)
    validate(found)
    assert instance_to_dict(found) == instance_to_dict(written)
