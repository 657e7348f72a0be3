"""The rows of a proof, built for all options at once, against shards added one by one, and against
the stand-alone checker's prices."""

from collections import Counter
from itertools import product
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from formulations import checker
from formulations.errors import InstanceError
from formulations.instance import Instance
from formulations.instance.file import instance_to_dict
from formulations.proof.build import build_rows
from formulations.proof.rows import Rows
from formulations.proof.weights import choice_prices, option_prices, vector_of
from tests.formulations.certificates import random_vector
from tests.formulations.fuzz.generate import generate
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


def test_prices_are_the_checkers() -> None:
    """Under random multipliers no option costs more than the stand-alone checker says and nearly
    all cost as much; what has a place there has one here, and nearly always only that."""
    prices, places = Counter[bool](), Counter[tuple[bool, bool]]()
    for number, apart in product(range(300), (True, False)):
        if apart:
            instance = generate(number)
            document = instance_to_dict(instance)
            read = checker.Instance(document)
        rows = build_rows(instance, apart=apart)
        vector = random_vector(Random(number), document, costs=True)
        vector = [row for row in vector if apart or "at" not in row]
        try:
            ours = vector_of(rows, vector)
        except InstanceError:  # places that the rows take together have multipliers of their own
            continue
        proof = checker.Proof(read, {
            "version": 3, "kind": "bound", "target": 1, "vectors": [vector], "nodes": [{}]
        })  # fmt: skip
        [theirs], options = proof.vectors, option_prices(rows, choice_prices(rows, ours))
        assert ours.right(0) == theirs.limit
        for table, name in enumerate(instance.table_names):
            least = dict[int, int]()
            for choice in proof._choices(name, homes=any(q >= 0 for q in theirs.covers)):
                price = theirs.price(table, choice)
                least[choice.position] = min(price, least.get(choice.position, price))
            for position, option in enumerate(instance.options_of(table)):
                places[position in least, bool(rows.possible[option])] += 1
                if position in least:
                    assert options[option] <= least[position]
                    prices[options[option] == least[position]] += 1
    assert prices[True] > 20 * prices[False]
    assert not places[True, False] and places[False, False] > 15 * places[False, True]


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
