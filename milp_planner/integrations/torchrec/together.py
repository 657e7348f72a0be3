"""Tables that must share a rank, whichever: their options, copied once a rank and tied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torchrec.distributed.planner.types import ShardingOption

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import choice

Together = Sequence[Sequence[str]]


def groups_of(together: Together, tables: Mapping[str, Sequence[ShardingOption]]) -> dict[str, int]:
    """The group of each table that is in one.

    Parameters
    ----------
    together : sequence of sequences of str
    tables : mapping of table name to its options

    Raises
    ------
    BadInput
        For unknown tables, tables in two groups, groups of fewer than two, and tables of towers.
    """
    found: dict[str, int] = {}
    for index, group in enumerate(together):
        if isinstance(group, str) or len(set(group)) < 2:
            raise BadInput(f"together: found {group!r}; allowed: two different tables or more")
        for name in group:
            if name not in tables:
                raise BadInput(f"together: unknown table {name!r}; {choice(name, tables)}")
            if name in found:
                raise BadInput(f"together: table {name!r} is named twice")
            if any(option.dependency for option in tables[name]):
                raise BadInput(
                    f"together: table {name!r} is a tower's, which shares a host already"
                )
            found[name] = index
    return found


def whole(table: str, options: Sequence[ShardingOption]) -> list[ShardingOption]:
    """Options that put the whole table on one rank.

    Raises
    ------
    BadInput
        When it has none.
    """
    kept = [o for o in options if o.partition_by == "device" and len(o.shards) == 1]
    if not kept:
        raise BadInput(f"together: table {table!r} has no option on a single rank (table_wise)")
    return kept


def copies(
    name: str, group: int, ranks: int
) -> Iterator[tuple[str, tuple[int, ...], tuple[str, int]]]:
    """Name, rank and tie of an option on every rank."""
    for rank in range(ranks):
        yield f"{name}@{rank}", (rank,), (f"together#{group}", rank)
