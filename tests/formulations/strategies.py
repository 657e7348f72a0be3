"""Small instances over everything that an Instance may hold, drawn by Hypothesis."""

import os
from collections.abc import Sequence

from hypothesis import assume
from hypothesis import strategies as st

from formulations.errors import InstanceError
from formulations.instance import Instance, Objective, Where
from tests.formulations.fuzz.generate import COSTS, Kinds, draw

#: Whether Hypothesis draws a seed, and not choice by choice: five times as fast, but what fails is
#: not made smaller.
SEEDS = "EXPLORE" not in os.environ


@st.composite
def instances(
    drawn: st.DrawFn,
    objectives: Sequence[Objective] = tuple(Objective),
    wheres: Sequence[Where] = tuple(Where),
    max_tables: int = 4,
    max_combinations: int = 20_000,
    fusion: bool = True,
    constraints: bool = True,
) -> Instance:
    """Draw an Instance with small numbers, of 0 to ``max_tables`` tables and at most
    ``max_combinations`` plans; ``constraints`` are pins, forbidden options and limits on moves."""
    kinds = Kinds(
        objectives, wheres, {"small": COSTS["small"]}, uses=(6,),
        tables=[*range(max_tables + 1), *range(2, max_tables + 1)],
        fusion=fusion, plain=0.2 if constraints else 1.0, most=max_combinations,
    )  # fmt: skip
    try:
        instance = draw(drawn(st.randoms(use_true_random=SEEDS)), "drawn", kinds)
    except InstanceError:
        assume(False)
    assume(instance is not None)
    return instance
