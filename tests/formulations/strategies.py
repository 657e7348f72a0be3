"""Small instances over everything that an Instance may hold, each choice drawn by Hypothesis."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from formulations.errors import InstanceError
from formulations.instance import Instance, IntArray, Objective, Where
from tests.formulations.fuzz.generate import COSTS, Kinds, draw


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
        instance = draw(drawn(st.randoms(use_true_random=False)), "drawn", kinds)
    except InstanceError:
        assume(False)
    assume(instance is not None)
    return instance


def repeated(instance: Instance, times: int) -> Instance:
    """The instance with every table several times; pins, moves and forbidden options are those of
    the first."""

    def ends(offsets: IntArray) -> IntArray:
        return np.append(0, np.cumsum(np.tile(np.diff(offsets), times)))

    names = ("option_group", "option_level", "block_where", "block_count", "block_distinct",
             "block_places", "shard_repeat", "shard_use", "shard_cost", "shard_move")  # fmt: skip
    tiled = {n: np.concatenate([getattr(instance, n)] * times) for n in names}
    offsets = {n: ends(getattr(instance, n))
               for n in ("table_options", "option_blocks", "block_shards")}  # fmt: skip
    tables = tuple(f"{t}{i}" for i in range(times) for t in instance.table_names)
    options = instance.option_names * times
    return replace(instance, table_names=tables, option_names=options, **tiled, **offsets)
