"""Choices of options that fit a target.

Each number of the search stands in one file, with what it counts.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

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
    table = [("whole", ANY, 1, 4, 50), ("halves", ANY, 2, 2, 30)]
    return made([[("everywhere", EVERY, 1, 6, 60)], table], capacity=10)


EVERYWHERE = ("everywhere", EVERY, 1, 6, 60)
EIGHT: list[list[Way]] = [[("whole", ANY, 1, 3, 40)]] * 8


@pytest.mark.parametrize(("tables", "target", "names"), [
    pytest.param([[EVERYWHERE], [("whole", ANY, 1, 5, 50),
                                 ("halves", ANY, 2, 3, 30)]],
                 1000, ["everywhere", "halves"],
                 id="6 + 5 bytes exceed 10 although the rank has time to spare"),
    pytest.param([[("fast", ANY, 1, 9, 10), ("slow", ANY, 1, 2, 20 + cost)]
                  for cost in (50, 0, 70, 30, 10, 90)],
                 200, ["fast", "slow", "fast", "fast", "slow", "fast"],
                 id="forty bytes hold four of six fast tables and the two that lose least"),
    pytest.param([*EIGHT, [("one", ANY, 1, 10, 20), ("spread", EVERY, 1, 3, 6)]],
                 100, ["whole"] * 8 + ["spread"],
                 id="a table that would fill memory in a fifth of the time is spread"),
    pytest.param([*EIGHT, [("one", ANY, 1, 2, 20), ("spread", EVERY, 1, 1, 10)]],
                 1000, ["whole"] * 8 + ["one"],
                 id="ranks work 85 in the mean, so the rest of 1,000 costs nothing"),
])  # fmt: skip
def test_memory_and_time_have_a_price(
    tables: list[list[Way]], target: int, names: list[str]
) -> None:
    """On four ranks of ten bytes."""
    assert chosen(made(tables, capacity=10), target) == names


def test_a_shard_must_fit_beside_what_every_rank_carries() -> None:
    """60 + 50 fit 110; at 109 the table is halved, and below 60 + 30 nothing fits."""
    assert chosen(whole_or_halves(), 110) == ["everywhere", "whole"]
    assert chosen(whole_or_halves(), 109) == ["everywhere", "halves"]
    assert chosen(whole_or_halves(), 89) is None


FLOOR, CUT = at(EVERY, 50, 50), {"whole": at(ANY, 40, 0), "halves": at(ANY, 22, 0, count=2)}


def test_a_shard_takes_at_most_half_of_what_a_target_leaves_above_the_means() -> None:
    """Every rank has 50 in each phase, and 10 more in the first in the mean; a whole table raises
    that peak by 30, so it is halved below 110 + 60. Where 90 of the first phase are hidden, it
    raises nothing at all."""
    instance = built([FLOOR, CUT], "step_time", [range(4)], phases="pq")
    assert [chosen(instance, target)[1] for target in (170, 169)] == ["whole", "halves"]
    instance = built([FLOOR, CUT], "pipelined_step", [range(4)], [90, 0], "pq")
    assert chosen(instance, 50)[1] == "whole"


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
    assert bare == ["NEAR, PEAKED, AIMS = Near(), Peaked(), Aims()"]
