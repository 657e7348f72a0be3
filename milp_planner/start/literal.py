"""A plan taken literally: the options and ranks that its rows mean, all of which must be legal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from formulations import Instance, Placement
from formulations.instance.assigning import misplaced
from milp_planner.drawing.units import show_ranks
from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.problems import choice
from milp_planner.pricing import Options
from milp_planner.pricing.options import TIERED, Choice
from milp_planner.pricing.shared_caches import Cached, factors
from milp_planner.start.rows import StartTable, refuse

COLUMN_WISE = ("column_wise", "table_column_wise")


def matched(rows: Sequence[StartTable], model: Model) -> tuple[list[StartTable | None], list[str]]:
    """The row of each table of the model, or None; and problems of wrong rows.

    A row may name its table by a longer path that ends in the table's name after a dot, as
    TorchRec's printout does. One shard of ``column_wise`` is a whole table: ``table_wise``.
    """
    names = [table.name for table in model.tables]
    known, wrong = set(names), list[str]()
    by_name: dict[str, StartTable] = {}
    for row in rows:
        name = _known_as(row.table, known)
        if name is None:
            wrong.append(f"{row.where}: the model has no such table; {choice(row.table, names)}")
        elif name in by_name:
            wrong.append(f"{row.where}: is listed twice")
        else:
            by_name[name] = whole(replace(row, table=name))
    return [by_name.get(name) for name in names], wrong


def as_they_run(rows: Sequence[StartTable | None], model: Model) -> list[StartTable | None]:
    """The rows of cached tables at the load factors of TorchRec's kernels."""
    cached = {
        row.table: Cached(
            row.sharding_type, row.column_width or table.dim, row.ratio, row.ranks or (0,)
        )
        for table, row in zip(model.tables, rows, strict=True)
        if row is not None and row.ratio is not None and row.mode == "CACHING"
        if table.kind == "torchrec" and (row.ranks or row.sharding_type == "row_wise")
    }
    found = factors(model, cached)
    return [
        replace(row, ratio=found[row.table][0])
        if row is not None and len(found.get(row.table, ())) == 1
        else row
        for row in rows
    ]


def _known_as(path: str, known: set[str]) -> str | None:
    """The longest suffix of a dotted path that is a table's name."""
    parts = path.split(".")
    ends = (".".join(parts[i:]) for i in range(len(parts)))
    return next((end for end in ends if end in known), None)


def whole(row: StartTable) -> StartTable:
    if row.sharding_type != "column_wise" or row.ranks is None or len(row.ranks) != 1:
        return row
    return replace(row, sharding_type="table_wise", column_width=None)


def widened(model: Model, rows: Sequence[StartTable | None]) -> Model:
    """The model with every ratio and column width of the plan on its tables' grids.

    ``rows`` are in the order of the model's tables, None for a table that is new.
    """
    tables = []
    for table, row in zip(model.tables, rows, strict=True):
        if row is None:
            tables.append(table)
            continue
        limits = table.constraints
        changes: dict[str, tuple[object, ...]] = {}
        grid = limits.cache_ratios or model.workload.cache_ratios
        if row.ratio is not None and row.ratio not in grid:
            changes["cache_ratios"] = tuple(sorted({*grid, row.ratio}))
        widths = limits.column_widths
        if row.column_width is not None and widths is not None and row.column_width not in widths:
            changes["column_widths"] = (*widths, row.column_width)
        if changes:
            table = table.model_copy(update={"constraints": limits.model_copy(update=changes)})
        tables.append(table)
    return model.model_copy(update={"tables": tuple(tables)})


def place(
    options: Options,
    instance: Instance,
    rows: Sequence[StartTable | None],
    wrong: Sequence[str] = (),
) -> Placement:
    """The Placement that a plan describes, whether or not it fits; option −1 without a row.

    BadInput names every row that is not a legal option of its table, or whose ranks do not suit it,
    after the problems already in ``wrong``.
    """
    problems = list(wrong)
    candidates: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        if row is not None:
            with _noted(problems):
                candidates[index] = _candidates(options, index, row)
    found = np.full(instance.num_tables, -1, dtype=np.int64)
    ranks: list[list[np.ndarray]] = [[] for _ in range(instance.num_tables)]
    for index, option in _consistent(instance, candidates).items():
        row = rows[index]
        assert row is not None
        found[index] = option
        with _noted(problems):
            ranks[index] = _ranks(instance, option, row)
    refuse(problems)
    return Placement(found, ranks)


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    """Add a BadInput to the problems."""
    try:
        yield
    except BadInput as error:
        problems.append(str(error))


def _candidates(options: Options, index: int, row: StartTable) -> list[int]:
    """Options that a row may mean, likeliest first."""
    table = options.model.tables[index]
    found = [o for o in options.of(index) if _means(options.choices[o], row)]
    if not found:
        names, ranks = [options.names[o] for o in options.of(index)], row.ranks or ()
        there = options.cluster.num_ranks
        if row.sharding_type in COLUMN_WISE and len(ranks) > there:
            raise BadInput(
                f"{row.where}: {len(ranks)} column shards on {there} ranks have no price: options "
                "have at most one a rank; judge it on as many ranks, or with wider shards"
            )
        asked = "/".join([row.sharding_type, row.mode, *([str(row.ratio)] if row.ratio else [])])
        why = "; ".join(options.refused.get(table.name, ()))
        raise BadInput(f"{row.where}: {asked} on {len(row.ranks or ())} ranks is not a legal "
                       f"option; {_few(asked, names)}{f' ({why})' if why else ''}")  # fmt: skip
    wanted = row.dist_type or (table.dist_types[0] if table.kind == "dynamicemb" else None)
    return sorted(found, key=lambda o: (options.choices[o].dist_type != wanted,
                                        not options.choices[o].even))  # fmt: skip


def _few(asked: str, names: list[str]) -> str:
    """The allowed options, with the nearest one suggested and long lists cut."""
    text = choice(asked, names)
    if len(names) <= 8:
        return text
    return f"allowed: {len(names)} others, such as {', '.join(names[:4])}" + (
        text[text.rindex("; did") :] if "; did you mean" in text else ""
    )


def _means(choice: Choice, row: StartTable) -> bool:
    shards = None if row.ranks is None else len(row.ranks)
    return (
        choice.sharding == row.sharding_type
        and choice.mode == row.mode
        and (row.mode not in TIERED or choice.ratio == row.ratio)
        and (row.dist_type is None or choice.dist_type == row.dist_type)
        and (row.column_width is None or choice.width == row.column_width)
        and (row.fusion_caching is None or choice.caching_group == row.fusion_caching)
        and (row.sharding_type not in COLUMN_WISE or choice.columns == shards)
        and (choice.sharding != "grid_shard" or choice.columns * choice.row_parts == shards)
        and (choice.members is None or row.ranks is None or {*choice.members} == {*row.ranks})
    )


def _consistent(instance: Instance, candidates: Mapping[int, list[int]]) -> dict[int, int]:
    """One option per table; if several mean the same, the one that its fusion group can honour."""
    group, level = instance.option_group, instance.option_level
    levels: dict[int, set[int]] = {}
    for options in candidates.values():
        if len(options) == 1:
            levels.setdefault(int(group[options[0]]), set()).add(int(level[options[0]]))

    def honoured(option: int) -> bool:
        there = levels.get(int(group[option]))
        return int(group[option]) < 0 or there is None or there == {int(level[option])}

    return {
        table: next((option for option in options if honoured(option)), options[0])
        for table, options in candidates.items()
    }


def _ranks(instance: Instance, option: int, row: StartTable) -> list[np.ndarray]:
    """Ranks of every block of an option, from those the row lists in shard order."""
    blocks = list(instance.blocks_of(option))
    fixed = [instance.settled_ranks(block) for block in blocks]
    known = [ranks for ranks in fixed if ranks is not None]
    if len(known) == len(blocks):
        expected = [int(rank) for ranks in known for rank in ranks]
        if row.ranks is not None and sorted(row.ranks) != sorted(expected):
            raise BadInput(
                f"{row.where}: {instance.option_names[option]} needs ranks "
                f"{show_ranks(expected, -1)}, found {show_ranks(row.ranks, -1)}"
            )
        return known
    if row.ranks is None:
        raise BadInput(f"{row.where}: {instance.option_names[option]} needs its ranks")
    beyond = [rank for rank in row.ranks if rank >= instance.num_ranks]
    if beyond:
        raise BadInput(f"{row.where}: rank {beyond[0]} does not exist; "
                       f"allowed: 0 to {instance.num_ranks - 1}")  # fmt: skip
    for block in blocks:
        if wrong := misplaced(instance, instance.block(block), np.asarray(row.ranks)):
            raise BadInput(f"{row.where}: {instance.option_names[option]}: {wrong}")
    return [np.asarray(row.ranks, dtype=np.int64)]
