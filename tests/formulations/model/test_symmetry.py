"""By which table interchangeable ranks are put in order."""

from __future__ import annotations

import pytest

from formulations import Block, InstanceBuilder, Shard, Where
from formulations.instance.candidates import Candidates
from formulations.instance.lowering import lower
from formulations.model.symmetry import anchor_table


def candidates(*tables: dict[str, tuple[Where, int]]) -> Candidates:
    """Tables on two ranks; each option is one block of shards of a cost."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 9)], "busiest_rank")
    for number, options in enumerate(tables):
        builder.add_table(str(number))
        for name, (where, cost) in options.items():
            builder.add_option(name, [Block(where, [Shard({"hbm": 1}, [cost])])])
    instance = builder.build()
    return lower(instance, instance.allowed)


RARE = {"even": (Where.EVERY_RANK, 1), "whole": (Where.ANY_RANK, 90)}
USUAL = {"even": (Where.EVERY_RANK, 9), "whole": (Where.ANY_RANK, 8)}
SMALL = {"whole": (Where.ANY_RANK, 3)}
EVEN = {"even": (Where.EVERY_RANK, 50)}


@pytest.mark.parametrize(
    ("tables", "anchor"),
    [
        ((RARE, USUAL, SMALL), 1),
        ((SMALL, RARE, EVEN), 0),
        ((EVEN, RARE), 1),
        ((EVEN, EVEN), None),
    ],
)
def test_anchor(tables: tuple[dict[str, tuple[Where, int]], ...], anchor: int | None) -> None:
    """The dearest shard of options that are cheapest, not one that plans hardly use; else any."""
    assert anchor_table(candidates(*tables)) == anchor
