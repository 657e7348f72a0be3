"""The solved answers equal brute force, and following them leads to a plan."""

from __future__ import annotations

import json

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Scope, Settings
from formulations.diagnose import diagnose, least_capacity
from formulations.diagnose.ask import Asker
from formulations.diagnose.questions import constraints_of, lift, only
from formulations.instance_file import instance_from_dict, instance_to_dict
from tests.formulations.brute_force import brute_force
from tests.formulations.diagnose.test_questions import fits, small
from tests.formulations.examples import two_modes

LIMITS = Settings(time_limit=60, workers=1)


def test_headline_case_one_byte_short() -> None:
    """With 11 bytes of HBM the answers are 12 bytes of HBM, no DDR, or one table less."""
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
    """If another budget is to blame, more of this one is proved not to help."""
    found = least_capacity(two_modes(hbm=7, ddr=100), "ddr", Asker(LIMITS))
    assert found.impossible and found.least is None and found.proved


@given(small)
@settings(max_examples=25, deadline=None)
def test_capacity_advice_followed(instance: Instance) -> None:
    """At the least capacity a plan exists, one unit below none does (by brute force)."""
    for index, resource in enumerate(instance.resources):
        least = least_capacity(instance, resource.name, Asker(LIMITS))
        assert least.proved
        document = instance_to_dict(instance)
        capacity = document["resources"][index]
        if least.least is None:
            capacity["capacity"] = 10**6
            assert not fits(document)
            continue
        capacity["capacity"] = least.least
        assert fits(document)
        capacity["capacity"] = max(0, least.least - 1)
        assert least.least == 0 or not fits(document)
        assert resource.scope != Scope.CLUSTER or len(least.capacity) == 1


@given(small, st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_conflicts_are_conflicts(instance: Instance, capacity: int) -> None:
    """The tables and constraints named have no plan; leaving out any single one leaves a plan."""
    document = instance_to_dict(instance)
    for resource in document["resources"]:
        resource["capacity"] = capacity
    assume(not fits(document))
    instance = instance_from_dict(document)
    found = diagnose(instance, LIMITS).conflict
    assert found is not None and found.irreducible
    core = only(document, found.tables)
    for name in constraints_of(core):
        if name not in found.constraints:
            core = lift(core, name)
    assert not fits(core)
    for table in found.tables:
        assert fits(only(core, set(found.tables) - {table}))
    for name in found.constraints:
        assert fits(lift(core, name))


@given(small)
@settings(max_examples=25, deadline=None)
def test_drop_advice_followed(instance: Instance) -> None:
    """The rest after dropping the named tables has a plan."""
    found = diagnose(instance, LIMITS).drop
    assert found.proved and found.tables is not None
    rest = only(instance_to_dict(instance), set(instance.table_names) - set(found.tables))
    assert brute_force(instance_from_dict(rest)).objective is not None
