"""The rows of a proof, built for all options at once, against shards added one by one."""

from hypothesis import assume, given
from hypothesis import strategies as st

from formulations.instance import Instance
from formulations.proof.build import build_rows
from formulations.proof.rows import Rows
from formulations.proof.weights import choice_prices, option_prices, vector_of
from tests.formulations.proof.shard_by_shard import ShardByShard, Slot
from tests.formulations.strategies import instances


@given(instance=instances(), cells=st.sampled_from(["by class", "apart", "together"]))
def test_arrays_hold_what_shards_add_one_by_one(instance: Instance, cells: str) -> None:
    """Arrays and oracle agree on possible options, amounts in rows, slots and their choices."""
    rows = build_rows(instance, cells == "apart", cells == "together")
    slowly = ShardByShard(rows)
    assert rows.possible.tolist() == slowly.possible.tolist()
    for option in rows.possible.nonzero()[0].tolist():
        assert _amounts(rows, option) == _used(slowly.own[option])
    assert rows.possible[rows.slot_option].all()
    there = [_ordered(slot) for slot in slowly.slots if rows.possible[slot[0]]]
    assert [_slot(rows, i) for i in range(len(rows.slot_option))] == there


@given(instance=instances())
def test_equal_multipliers_prove_as_much_over_all_ranks_together(instance: Instance) -> None:
    """With one multiplier for every rank and machine, pooled ranks price no option higher than
    ranks told apart, so a pooled bound may be claimed."""
    assume(instance.shard_cost.min(initial=0) >= 0)
    together, apart = build_rows(instance, together=True), build_rows(instance)
    vector = [{"row": "capacity", "of": r.name, "times": 3} for r in instance.resources]
    costs = apart.measures.costs or ("total",)
    vector += [{"row": "cost", "of": name, "times": 2} for name in costs]
    few, many = vector_of(together, vector), vector_of(apart, vector)
    assert few.level == many.level and few.room == many.room
    pairs = (together, few), (apart, many)
    low, high = (option_prices(rows, choice_prices(rows, vector)) for rows, vector in pairs)
    for option in apart.possible.nonzero()[0].tolist():
        assert together.possible[option] and low[option] <= high[option]


def _slot(rows: Rows, index: int) -> Slot:
    choices = range(int(rows.slot_start[index]), int(rows.slot_start[index + 1]))
    columns = rows.slot_option, rows.slot_times, rows.slot_role
    option, times, role = (int(column[index]) for column in columns)
    return _ordered(
        (option, times, role, [(int(rows.machine[c]), _amounts(rows, c)) for c in choices])
    )


def _ordered(slot: Slot) -> Slot:
    *head, choices = slot
    found = [(group, _used(terms)) for group, terms in choices]
    return (*head, sorted(found, key=lambda choice: (choice[0], sorted(choice[1].items()))))


def _used(terms: dict[int, int]) -> dict[int, int]:
    return {row: amount for row, amount in terms.items() if amount}


def _amounts(rows: Rows, choice: int) -> dict[int, int]:
    """Row and amount; no row occurs twice."""
    part = slice(int(rows.start[choice]), int(rows.start[choice + 1]))
    pairs = [*zip(rows.row[part].tolist(), rows.amount[part].tolist(), strict=True)]
    assert len(dict(pairs)) == len(pairs)
    return _used(dict(pairs))
