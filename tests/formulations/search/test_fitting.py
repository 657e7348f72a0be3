"""Choices of options that fit a target.

Each number of the search stands in one file, with what it counts.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import formulations
from formulations.instance import Instance, Where
from formulations.search.fitting import Fitting
from tests.formulations.examples import ANY, EVERY, at, built

#: Name, kind of place, number of shards, use and cost of each.
Way = tuple[str, Where, int, int, int]


def made(tables: list[list[Way]], capacity: int, ranks: int = 4) -> Instance:
    """Tables with options of one block each."""
    found = [{name: at(where, cost, count=count, hbm=use) for name, where, count, use, cost in ways}
             for ways in tables]  # fmt: skip
    return built(found, machines=[range(ranks)], hbm=capacity)


def chosen(instance: Instance, target: int) -> list[str] | None:
    """Names of the options chosen at a target."""
    options = Fitting(instance).choice(np.ones(instance.num_options, dtype=bool), target)
    return None if options is None else [instance.option_names[o] for o in options]


def whole_or_halves() -> Instance:
    """A table on every rank (cost 60, use 6), and one that is whole or in two dearer halves."""
    return made(
        [
            [("everywhere", Where.EVERY_RANK, 1, 6, 60)],
            [("whole", Where.ANY_RANK, 1, 4, 50), ("halves", Where.ANY_RANK, 2, 2, 30)],
        ],
        capacity=10,
    )


def test_a_shard_must_fit_beside_what_every_rank_carries() -> None:
    """60 + 50 fit 110; at 109 the table is halved, and below 60 + 30 nothing fits."""
    assert chosen(whole_or_halves(), 110) == ["everywhere", "whole"]
    assert chosen(whole_or_halves(), 109) == ["everywhere", "halves"]
    assert chosen(whole_or_halves(), 89) is None


def test_what_every_rank_carries_counts_in_memory_too() -> None:
    """6 + 5 bytes exceed 10 although the rank has time to spare, so the table is halved."""
    everywhere = [("everywhere", Where.EVERY_RANK, 1, 6, 60)]
    table = [("whole", Where.ANY_RANK, 1, 5, 50), ("halves", Where.ANY_RANK, 2, 3, 30)]
    assert chosen(made([everywhere, table], capacity=10), 1000) == ["everywhere", "halves"]


def test_full_memory_has_a_price() -> None:
    """Forty bytes hold four of six fast tables and two slow ones, those that lose least."""
    tables: list[list[Way]] = [
        [("fast", Where.ANY_RANK, 1, 9, 10), ("slow", Where.ANY_RANK, 1, 2, 20 + cost)]
        for cost in (50, 0, 70, 30, 10, 90)
    ]
    assert chosen(made(tables, capacity=10), 200) == [
        "fast",
        "slow",
        "fast",
        "fast",
        "slow",
        "fast",
    ]


def test_a_shard_pays_for_the_time_that_it_leaves_unused() -> None:
    """A table that would fill a rank's memory in a fifth of its time is spread over all ranks,
    though its shards cost more together."""
    others: list[list[Way]] = [[("whole", Where.ANY_RANK, 1, 3, 40)] for _ in range(8)]
    table = [("one", Where.ANY_RANK, 1, 10, 20), ("spread", Where.EVERY_RANK, 1, 3, 6)]
    instance = made([*others, table], capacity=10)
    assert chosen(instance, 100) == ["whole"] * 8 + ["spread"]


FLOOR = at(EVERY, 50, 50)


CUT = {"whole": at(ANY, 40, 0), "halves": at(ANY, 22, 0, count=2)}


def test_a_shard_takes_at_most_half_of_what_a_target_leaves_above_the_means() -> None:
    """Every rank has 50 in each phase, and 10 more in the first in the mean; a whole table raises
    that peak by 30, so it is halved below 110 + 60."""
    instance = built([FLOOR, CUT], "step_time", [range(4)], phases="pq")
    assert [chosen(instance, target)[1] for target in (170, 169)] == ["whole", "halves"]


def test_a_shard_may_take_what_other_work_hides() -> None:
    """As above, but 90 of the first phase are hidden: the whole table raises nothing at all."""
    instance = built([FLOOR, CUT], "pipelined_step", [range(4)], [90, 0], "pq")
    assert chosen(instance, 50)[1] == "whole"


def test_time_that_no_table_needs_costs_nothing() -> None:
    """Ranks work 85 in the mean, so a table that leaves the rest of 1,000 unused stays whole."""
    others: list[list[Way]] = [[("whole", Where.ANY_RANK, 1, 3, 40)] for _ in range(8)]
    table = [("one", Where.ANY_RANK, 1, 2, 20), ("spread", Where.EVERY_RANK, 1, 1, 10)]
    instance = made([*others, table], capacity=10)
    assert chosen(instance, 1000) == ["whole"] * 8 + ["one"]


def test_the_least_cost_is_the_mean_of_the_cheapest_options() -> None:
    """(4 × 60 + 50) / 4, rounded down."""
    instance = whole_or_halves()
    assert Fitting(instance).least(np.ones(instance.num_options, dtype=bool)) == 72


HOME = Path(formulations.__file__).parent
#: Where numbers belong; those of the last name places in an array.
THERE = {"numbers.py", "parameters.py", "anneal_data.py"}


def sources() -> Iterator[Path]:
    """The files of the search and of the goals."""
    for room in ("search", "goals"):
        yield from sorted((HOME / room).rglob("*.py"))


def is_number(value: ast.expr) -> bool:
    """Whether an expression is a number, or several."""
    if isinstance(value, ast.Tuple):
        return any(is_number(each) for each in value.elts)
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) or is_number(value.right)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def numbers(text: str) -> list[int]:
    """Lines of a source at which a module's name gets a number."""
    named = [n for n in ast.parse(text).body if isinstance(n, ast.Assign | ast.AnnAssign)]
    return [n.lineno for n in named if n.value is not None and is_number(n.value)]


def test_no_other_file_has_numbers_of_its_own() -> None:
    """Neither the search nor its goals name a number beside their file."""
    assert numbers("A = 1\nB, C = 2.0, 3\nD = -(2**4)\nE: int = 5\nF = 'text'") == [1, 2, 3, 4]
    found = [
        f"{file.relative_to(HOME)}:{line}"
        for file in sources()
        if file.name not in THERE
        for line in numbers(file.read_text(encoding="utf-8"))
    ]
    assert not found


def test_every_number_says_what_it_counts() -> None:
    """A comment stands above it, or above those that are named with it."""
    lines = (HOME / "search" / "numbers.py").read_text(encoding="utf-8").splitlines()
    named = [n for n, line in enumerate(lines) if line.lstrip()[:1].isalpha() and " = " in line]
    assert len(named) > 50
    bare = [lines[n] for n in named
            if not lines[n - 1].lstrip().startswith("#:") and n - 1 not in named]  # fmt: skip
    assert bare == ["NEAR, PATTERNS, PEAKED, AIMS = Near(), Patterns(), Peaked(), Aims()"]
