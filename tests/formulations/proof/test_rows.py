"""The rows of a proof, built for all options at once, against the stand-alone checker's prices."""

from collections import Counter
from itertools import product
from random import Random

from hypothesis import assume, given

from formulations import checker
from formulations.errors import InstanceError
from formulations.instance import Instance
from formulations.instance.file import instance_to_dict
from formulations.proof.build import build_rows
from formulations.proof.weights import choice_prices, option_prices, vector_of
from tests.formulations.certificates import random_vector
from tests.formulations.fuzz.generate import generate
from tests.formulations.strategies import instances


def test_prices_are_the_checkers() -> None:
    """Under random multipliers no option costs more than the stand-alone checker says and nearly
    all cost as much; what has a place there has one here, and nearly always only that."""
    prices, places = Counter[bool](), Counter[tuple[bool, bool]]()
    for number, apart in product(range(300), (True, False)):
        instance = generate(number)
        document, rows = instance_to_dict(instance), build_rows(instance, apart=apart)
        vector = random_vector(Random(number), document, costs=True)
        vector = [row for row in vector if apart or "at" not in row]
        try:
            ours = vector_of(rows, vector)
        except InstanceError:  # places that the rows take together have multipliers of their own
            continue
        proof = checker.Proof(checker.Instance(document), {
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
