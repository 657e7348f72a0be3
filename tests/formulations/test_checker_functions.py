"""Rows of dual-feasible functions in the stand-alone checker: by hand, and forged."""

import itertools
from copy import deepcopy
from typing import Any

import pytest

from formulations import checker
from tests.formulations.by_hand import (
    PHASES,
    TWO,
    Document,
    block,
    cut,
    exactly,
    instance,
    on_page,
    option,
    proof,
    proves,
    shard,
    whole,
)

ONE = {"name": "steps", "parameter": 2, "first": 1, "second": 0, "uses": {}, "times": 1}


def row(bins: list[int], *functions: Document, **more: Any) -> Document:
    """A row of functions of compute and exchange."""
    found = {"row": "functions", "first": ["compute"], "second": ["exchange"], "bins": bins,
             "each": [0, 0], "times": 0, "functions": list(functions)}  # fmt: skip
    return found | more


def three() -> tuple[Document, Document]:
    """The instance and certificate of docs/proof.md: three shards on two ranks."""
    rows = [row([5, 7], ONE), row([7, 1], ONE | {"first": 0, "second": 1})]
    nodes = [cut("compute", 5), {"use": [0]}, {"use": [1]}]
    return instance([whole(3, 1)] * 3, "step_time", **TWO, **PHASES), proof(8, rows, nodes)


def test_the_example_of_the_page() -> None:
    """Functions in two boxes prove 8 where pooled loads prove 6."""
    document, certificate = three()
    exactly(document, certificate)
    assert on_page("What three shards add up to on two ranks") == certificate
    exactly(document, proof(6, [row([7, 7], each=[1, 1], times=2)]))


@pytest.mark.parametrize("name", checker.FUNCTIONS)
def test_sizes_that_fit_in_a_bin_add_up_to_no_more_than_its_own_value(name: str) -> None:
    """For all sets of sizes in bins of 0 to 12, every parameter: a function is dual feasible."""
    function = checker.FUNCTIONS[name]
    for full in range(13):
        most = full // 2 if name == "threshold" else full + 2
        for parameter in range(1, most + 1):
            best = [0] * (full + 1)  # the largest sum of values, by the sum of sizes
            for total, size in itertools.product(range(full + 1), range(1, full + 1)):
                if size <= total:
                    one = function(size, full, parameter)
                    best[total] = max(best[total], best[total - size] + one)
            assert max(best) <= function(full, full, parameter)
            assert function(0, full, parameter) == 0


class TestRow:
    """What a row of functions adds up."""

    def test_pairs_that_fit_in_neither_phase(self) -> None:
        """Mixed sizes: of 3 and 2, or 2 and 3, no two fit in 4 and 4."""
        tables = [whole(3, 2), whole(2, 3), whole(3, 2)]
        free = instance(tables, "step_time", **TWO, **PHASES)
        mixed = ONE | {"second": 1}
        nodes = [cut("compute", 4), {"peak": ["exchange"], "cuts": [4]}, {"use": [2]},
                 {"use": [0]}, {"use": [1]}]  # fmt: skip
        rows = [row([4, 4], mixed), row([3, 9], ONE), row([9, 3], ONE | {"first": 0, "second": 1})]
        assert proves(free, proof(9, rows, nodes))

    def test_memory_is_a_size(self) -> None:
        """Of three shards of 5 bytes, no two fit in 9; so one is slow."""
        fast, slow = block("any_rank", shard([2, 0], hbm=5)), block("any_rank", shard([9, 0]))
        hbm = [{"name": "hbm", "scope": "rank", "capacity": [9, 8]}]
        tables = [[option("fast", fast), option("slow", slow)]] * 3
        free = instance(tables, "step_time", resources=hbm, **TWO, **PHASES)
        function = ONE | {"first": 0, "uses": {"hbm": 1}, "times": 7}
        both = row([9, 9], function, each=[1, 0], times=2)
        exactly(free, proof(7, [both]))
        wrong = row([9, 9], function | {"uses": {"ddr": 1}})
        with pytest.raises(checker.Unreadable, match="not there"):
            proves(free, proof(7, [wrong]))

    def test_the_busiest_rank(self) -> None:
        """Three shards of 2 on two ranks: 4 by a function, 3 by the sum."""
        document = instance([[option("o", block("any_rank", shard(2)))]] * 3, **TWO)
        sets = {"first": ["busiest_rank"], "second": []}
        exactly(document, proof(4, [row([3, 0], ONE, **sets)]))
        exactly(document, proof(3, [row([3, 0], each=[1, 0], times=2, **sets)]))

    def test_floors_are_not_sizes(self) -> None:
        """A block on every rank adds its floor for each rank, and only what is above as a size."""
        every = [option("all", block("every_rank", shard([3, 2])))]
        free = instance([every, *[whole(2, 0)] * 3], "step_time", **TWO, **PHASES)
        exactly(free, proof(9, [row([3, 3], ONE)]))
        apart = [option("all", block("every_rank", shard([4, 0]), shard([3, 0])))]
        free = instance([apart, whole(2, 0), whole(2, 0)], "step_time", **TWO, **PHASES)
        exactly(free, proof(6, [row([2, 2], each=[1, 0], times=2)]))

    def test_blocks_of_an_option_are_sizes_of_their_own(self) -> None:
        """Three blocks of one option may share a rank: two of them must, and that costs 4."""
        blocks = [block("any_rank", shard([2, 0])) for _ in range(3)]
        free = instance([[option("o", *blocks)]], "step_time", **TWO, **PHASES)
        exactly(free, proof(4, [row([3, 3], ONE)]))

    def test_a_shard_above_the_bin_excludes_its_option(self) -> None:
        """An option of 8 is not in a plan below 8, in which the others need 6."""
        tables = [[*whole(8, 0), option("two", block("any_rank", shard([3, 0]), count=2))]]
        free = instance([*tables, whole(3, 0)], "step_time", **TWO, **PHASES)
        exactly(free, proof(6, [row([5, 5], ONE)]))


class TestForged:
    """Nothing in a row is trusted."""

    def test_bins_that_are_too_small(self) -> None:
        """A row whose bins are below the heights of the case does not count."""
        document, certificate = three()
        for vector, bins in ((0, [4, 7]), (0, [5, 6]), (1, [6, 1]), (1, [7, 0])):
            forged = deepcopy(certificate)
            forged["vectors"][vector][0]["bins"] = bins
            assert not proves(document, forged)

    @pytest.mark.parametrize("change", [
        {"name": "half"}, {"name": "steps", "parameter": 0}, {"parameter": 2.0}, {"times": -1},
        {"parameter": True}, {"first": -1}, {"uses": {"hbm": -1}}, {"more": 1}, {"value": 5},
    ])  # fmt: skip
    def test_functions_that_are_none(self, change: Document) -> None:
        """Unknown names and keys, and numbers that no function has, are not read."""
        document, certificate = three()
        certificate["vectors"][0][0]["functions"] = [ONE | change]
        with pytest.raises(checker.Unreadable):
            proves(document, certificate)

    def test_a_threshold_above_a_half(self) -> None:
        """It would count two shards that fit in one bin as two bins."""
        document = instance([whole(2, 0)] * 2, "step_time", **TWO, **PHASES)
        function = ONE | {"name": "threshold", "parameter": 3}
        with pytest.raises(checker.Unreadable, match="half"):
            proves(document, proof(5, [row([4, 4], function)]))

    @pytest.mark.parametrize("change", [
        {"bins": [5]}, {"each": [0, 0, 0]}, {"first": []}, {"first": ["exchange"]},
        {"second": ["compute"]}, {"first": ["p"]}, {"of": "step_time"}, {"bins": [-1, 7]},
    ])  # fmt: skip
    def test_rows_of_another_form(self, change: Document) -> None:
        """Bins, multipliers and sets of phases are as the page says."""
        document, certificate = three()
        certificate["vectors"][0][0] |= change
        with pytest.raises(checker.Unreadable):
            proves(document, certificate)

    def test_only_bounds_have_them(self) -> None:
        """They are an error where there is no plan, and under ``total``."""
        document, certificate = three()
        certificate["kind"] = "infeasible"
        del certificate["target"], certificate["nodes"][1:], certificate["nodes"][0]
        certificate["nodes"] = [{"use": [0]}]
        with pytest.raises(checker.Unreadable):
            proves(document, certificate)
        with pytest.raises(checker.Unreadable):
            proves(document | {"objective": "total"}, three()[1])

    def test_more_functions_than_steps(self) -> None:
        """Every function of a shard's size is counted."""
        document, certificate = three()
        certificate["vectors"][0][0]["functions"] = [ONE] * 17
        case = checker.Proof(checker.Instance(document), certificate)
        before = case.meter.left
        assert case.open_case() is None
        assert before - case.meter.left > 17
