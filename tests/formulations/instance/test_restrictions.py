"""Demands of an instance beyond tables and capacities, in words."""

from __future__ import annotations

from dataclasses import replace

from formulations import Block, InstanceBuilder, Shard, Where
from formulations.instance import Current, Instance, Pin
from formulations.instance.restrictions import restrictions


def _instance() -> Instance:
    builder = InstanceBuilder([[0, 1]], ["compute"], [("hbm", "rank", 9)])
    for table in "ab":
        builder.add_table(table)
        for option in ("fast", "slow"):
            builder.add_option(option, [Block(Where.ANY_RANK, [Shard({"hbm": 1}, [1])])])
    return builder.build()


def test_an_instance_without_restrictions() -> None:
    """No restriction is named; a plan in production alone restricts nothing."""
    assert restrictions(_instance()) == ()
    assert restrictions(replace(_instance(), current=(Current(0, 1, ((1,),)),))) == ()


def test_every_restriction_is_named() -> None:
    """Limits with the tables they count, every pin with its ranks, every forbidden option."""
    asked = replace(
        _instance(), pins=(Pin(0, 1, ((1,),)), Pin(1, 3)), forbidden=((0, 0), (1, 2)),
        current=(Current(0, 1, ((1,),)),), max_moved_tables=0, max_moved_bytes=1500,
    )  # fmt: skip
    assert restrictions(asked) == (
        "max_moved_tables: at most 0 tables may move, of 1 table in current",
        "max_moved_bytes: at most 1,500 bytes may move, of 1 table in current",
        "pins: 2: a slow on ranks [[1]], b slow",
        "forbidden: 2: a fast, b fast",
    )
