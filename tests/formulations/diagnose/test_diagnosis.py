"""The solved answers equal brute force, and following them leads to a plan."""

import json
from itertools import combinations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Scope, Settings
from formulations.capacity import budget
from formulations.capacity.budget import Budget
from formulations.diagnose import diagnose, fewest_drops, least_capacity
from formulations.diagnose.questions import constraints_of, lift, only, with_capacity
from formulations.instance.file import instance_from_dict, instance_to_dict
from tests.formulations.diagnose.test_questions import fits, small
from tests.formulations.examples import two_modes

LIMITS = Settings(time_limit=60, workers=1)


def test_headline_case_one_byte_short() -> None:
    """With 11 bytes of HBM the answers are 12 bytes of HBM, 20 of DDR, or one table less."""
    found = diagnose(two_modes(hbm=11, ddr=12), LIMITS)
    hbm, ddr = found.capacities
    assert (hbm.least, hbm.short_by, hbm.proved) == (12, 1, True)
    assert (ddr.least, ddr.short_by, ddr.proved) == (20, 8, True)
    assert found.drop.tables is not None and len(found.drop.tables) == 1 and found.drop.proved
    assert found.conflict is not None and found.conflict.irreducible
    assert set(found.conflict.tables) == {"a", "b"}
    assert set(found.conflict.constraints) == {"hbm", "ddr"}
    json.dumps(found.to_dict())


def test_when_no_capacity_helps() -> None:
    """Where HBM is what falls short, more DDR is proved not to help."""
    found = least_capacity(two_modes(hbm=7, ddr=100), "ddr", Budget(LIMITS))
    assert found.impossible and found.least is None and found.proved


@given(small)
@settings(max_examples=25, deadline=None)
def test_capacity_advice_followed(instance: Instance) -> None:
    """At the least capacity a plan exists, one unit below none does (by brute force)."""
    for resource in instance.resources:
        least = least_capacity(instance, resource.name, Budget(LIMITS))
        assert least.proved
        if least.least is None:
            assert not fits(with_capacity(instance, [resource.name], 10**6))
            continue
        assert fits(with_capacity(instance, [resource.name], least.least))
        if least.least:
            assert not fits(with_capacity(instance, [resource.name], least.least - 1))
        assert resource.scope != Scope.CLUSTER or len(least.capacity) == 1


@given(small, st.integers(0, 12))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)  # most drawn instances fit
def test_conflicts_are_conflicts(instance: Instance, most: int) -> None:
    """The named tables and constraints have no plan; without any one of them there is a plan."""
    instance = with_capacity(instance, [r.name for r in instance.resources], most)
    assume(not fits(instance))
    found = diagnose(instance, LIMITS).conflict
    assert found is not None and found.irreducible
    core = only(instance, found.tables)
    for name in constraints_of(core):
        if name not in found.constraints:
            core = lift(core, name)
    assert not fits(core)
    for table in found.tables:
        assert fits(only(core, set(found.tables) - {table}))
    for name in found.constraints:
        assert fits(lift(core, name))
    assert found.smallest == all(
        fits(only(instance, fewer))
        for fewer in combinations(instance.table_names, len(found.tables) - 1)
    )


@given(small)
@settings(max_examples=25, deadline=None)
def test_drop_advice_followed(instance: Instance) -> None:
    """Without the named tables, the rest has a plan."""
    found = diagnose(instance, LIMITS).drop
    assert found.proved and found.tables is not None
    assert fits(only(instance, set(instance.table_names) - set(found.tables)))


def test_large_instances_are_answered_truly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where bounds and plans answer instead of the exact model, brute force agrees with both, and
    capacities and tables to drop are still found."""
    monkeypatch.setattr(budget, "EXACT_ALONE", -1)
    limits, found = Settings(time_limit=4, workers=1), set()

    @given(small)
    @settings(max_examples=15, deadline=None)
    def each(instance: Instance) -> None:
        for resource in instance.resources:
            least = least_capacity(instance, resource.name, Budget(limits))
            if least.least is not None:
                assert fits(with_capacity(instance, [resource.name], least.least))
                found.add("least")
            if least.bound:
                assert not fits(with_capacity(instance, [resource.name], least.bound - 1))
                found.add("bound")
            if least.impossible:
                assert not fits(with_capacity(instance, [resource.name], 10**6))
        drop = fewest_drops(instance, Budget(limits))
        if drop.tables is not None:
            assert fits(only(instance, set(instance.table_names) - set(drop.tables)))
            assert drop.bound is None or drop.bound <= len(drop.tables)
            found.add("drop")

    each()
    assert {"least", "drop"} <= found


@given(small, st.integers(0, 12))
@settings(max_examples=25, deadline=None)
def test_resources_that_grow_together(instance: Instance, most: int) -> None:
    """The least common capacity of two resources of one scope is what trying every value finds."""
    document = instance_to_dict(instance)
    if not document["resources"]:
        return
    twin = {**document["resources"][0], "name": "twin"}
    document["resources"].append(twin)
    first = document["resources"][0]["name"]
    for index, table in enumerate(document["tables"]):
        for shard in (s for o in table["options"] for b in o["blocks"] for s in b["shards"]):
            used = shard.get("use", {}).get(first)
            if used is not None:  # half of the tables lean on one, half on the other
                shard["use"]["twin"] = used + (most if index % 2 else 0)
    both = [first, "twin"]
    twins = instance_from_dict(document)
    found = least_capacity(twins, first, Budget(LIMITS), together=both)
    truth = next((c for c in range(120) if fits(with_capacity(twins, both, c))), None)
    assert found.proved and found.least == truth


def test_when_time_is_up_nothing_is_claimed() -> None:
    """A diagnosis stopped before it begins names no capacity, table or conflict."""
    stopped = Settings(time_limit=60, workers=1)
    stopped.stop.set()
    found = diagnose(two_modes(hbm=11), stopped)
    assert all(c.least is None and not c.proved and not c.impossible for c in found.capacities)
    assert found.drop.tables is None and not found.drop.proved and found.conflict is None
