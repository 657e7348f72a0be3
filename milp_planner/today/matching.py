"""From the plan a user runs today to a Placement on our Instance of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from formulations import Instance, Placement, Settings, check, solve
from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.problems import choice
from milp_planner.plans.compile import (
    ClusterSource,
    Compiled,
    ModelSource,
    as_current,
    compile_for,
    to_model,
)
from milp_planner.pricing import Options
from milp_planner.pricing.options import TIERED, Choice
from milp_planner.today.rows import CurrentTable, TodaySource, read_today, refuse

#: Most seconds for placing new tables initially.
GREEDY_SECONDS = 10.0
_COLUMN_WISE = ("column_wise", "table_column_wise")


def compile_today(
    source: TodaySource, model: ModelSource, cluster: ClusterSource, objective: str
) -> tuple[Compiled, Placement]:
    """Compile a model that has every option of today's plan, and place the plan on it.

    The plan may not fit, but its ranks suit its options: BadInput for a plan that does not belong
    to the model and cluster. The Instance has it as ``current``, so moves from it are counted.
    """
    read = to_model(model)
    rows, wrong = matched(read_today(source), read)
    missing = [t.name for t, row in zip(read.tables, rows, strict=True) if row is None]
    if missing and not wrong:  # a misspelt table is present under another name
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        wrong.append(f"today's plan does not place table {missing[0]}{more}")
    compiled = compile_for(widened(read, rows), cluster, objective)
    return _on_it(compiled, rows, (), wrong)


def compile_grown(
    source: TodaySource,
    model: ModelSource,
    cluster: ClusterSource,
    objective: str,
    later: Sequence[CurrentTable] = (),
) -> tuple[Compiled, Placement | None]:
    """As :func:`compile_today`, for a model with new tables, which can be placed anywhere.

    New tables are not in ``current``. In the Placement they are where ``later`` has them, or else
    where greedy puts them; None if greedy finds no place.
    """
    read = to_model(model)
    rows, wrong = matched(read_today(source), read)
    new = [t.name for t, row in zip(read.tables, rows, strict=True) if row is None]
    if not new:
        compiled = compile_for(widened(read, rows), cluster, objective)
        return _on_it(compiled, rows, (), wrong)
    by_name = {row.table: row for row in later}
    if all(name in by_name for name in new):
        rows = [row or _whole(by_name[t.name]) for t, row in zip(read.tables, rows, strict=True)]
        compiled = compile_for(widened(read, rows), cluster, objective)
        return _on_it(compiled, rows, new, wrong)
    compiled = compile_for(widened(read, rows), cluster, objective)
    start = solve(compiled.instance, "greedy", Settings(time_limit=GREEDY_SECONDS)).placement
    if start is None and not wrong:
        return compiled, None
    return _on_it(compiled, rows, new, wrong, start)


def _on_it(
    compiled: Compiled,
    rows: Sequence[CurrentTable | None],
    new: Sequence[str],
    wrong: Sequence[str],
    start: Placement | None = None,
) -> tuple[Compiled, Placement]:
    """The plan on the Instance, which counts moves from it, except moves of new tables."""
    placement = place(compiled.options, compiled.instance, rows, start, wrong)
    verdict = check(compiled.instance, placement)
    if not verdict.objectives:
        raise BadInput(f"today's plan: {verdict.violations[0]}")
    names = compiled.instance.table_names
    current = tuple(now for now in as_current(placement) if names[now.table] not in new)
    return replace(compiled, instance=replace(compiled.instance, current=current)), placement


def matched(
    rows: Sequence[CurrentTable], model: Model
) -> tuple[list[CurrentTable | None], list[str]]:
    """The row of each table of the model, or None; and problems of wrong rows.

    A row may name its table by a longer path that ends in the table's name after a dot, as
    TorchRec's printout does. One shard of ``column_wise`` is a whole table: ``table_wise``.
    """
    names = [table.name for table in model.tables]
    known, wrong = set(names), list[str]()
    by_name: dict[str, CurrentTable] = {}
    for row in rows:
        name = _known_as(row.table, known)
        if name is None:
            wrong.append(f"{row.where}: the model has no such table; {choice(row.table, names)}")
        elif name in by_name:
            wrong.append(f"{row.where}: is listed twice")
        else:
            by_name[name] = _whole(replace(row, table=name))
    return [by_name.get(name) for name in names], wrong


def _known_as(path: str, known: set[str]) -> str | None:
    """The longest suffix of a dotted path that is a table's name."""
    parts = path.split(".")
    ends = (".".join(parts[i:]) for i in range(len(parts)))
    return next((end for end in ends if end in known), None)


def _whole(row: CurrentTable) -> CurrentTable:
    if row.sharding_type != "column_wise" or row.ranks is None or len(row.ranks) != 1:
        return row
    return replace(row, sharding_type="table_wise", column_width=None)


def widened(model: Model, rows: Sequence[CurrentTable | None]) -> Model:
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
    rows: Sequence[CurrentTable | None],
    start: Placement | None = None,
    wrong: Sequence[str] = (),
) -> Placement:
    """The Placement that a plan describes, whether or not it fits.

    Tables without a row stay as in ``start``.

    BadInput names every row that is not a legal option of its table, or whose ranks do not suit it,
    after the problems already in ``wrong``.
    """
    problems = list(wrong)
    candidates: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        if row is not None:
            with _noted(problems):
                candidates[index] = _candidates(options, index, row)
        elif start is not None:
            candidates[index] = [int(start.options[index])]
    chosen = _consistent(instance, candidates)
    ranks = []
    for index, option in chosen.items():
        row = rows[index]
        if row is not None:
            with _noted(problems):
                ranks.append(_ranks(instance, option, row))
        elif start is not None:
            ranks.append(list(start.ranks[index]))
    refuse(problems)
    return Placement(np.asarray([*chosen.values()], dtype=np.int64), ranks)


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    """Add a BadInput to the problems."""
    try:
        yield
    except BadInput as error:
        problems.append(str(error))


def _candidates(options: Options, index: int, row: CurrentTable) -> list[int]:
    """Options that a row may mean, likeliest first."""
    table = options.model.tables[index]
    found = [o for o in options.of(index) if _means(options.choices[o], row)]
    if not found:
        names = [options.names[o] for o in options.of(index)]
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


def _means(choice: Choice, row: CurrentTable) -> bool:
    shards = None if row.ranks is None else len(row.ranks)
    return (
        choice.sharding == row.sharding_type
        and choice.mode == row.mode
        and (row.mode not in TIERED or choice.ratio == row.ratio)
        and (row.dist_type is None or choice.dist_type == row.dist_type)
        and (row.column_width is None or choice.width == row.column_width)
        and (row.fusion_caching is None or choice.caching_group == row.fusion_caching)
        and (row.sharding_type not in _COLUMN_WISE or choice.columns == shards)
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


def _ranks(instance: Instance, option: int, row: CurrentTable) -> list[np.ndarray]:
    """Ranks of every block of an option, from those the row lists in shard order."""
    blocks = list(instance.blocks_of(option))
    fixed = [instance.settled_ranks(block) for block in blocks]
    known = [ranks for ranks in fixed if ranks is not None]
    if len(known) == len(blocks):
        expected = [int(rank) for ranks in known for rank in ranks]
        if row.ranks is not None and sorted(row.ranks) != sorted(expected):
            raise BadInput(f"{row.where}: {instance.option_names[option]} needs ranks "
                           f"{_short(expected)}, found {_short(row.ranks)}")  # fmt: skip
        return known
    if row.ranks is None:
        raise BadInput(f"{row.where}: {instance.option_names[option]} needs its ranks")
    beyond = [rank for rank in row.ranks if rank >= instance.num_ranks]
    if beyond:
        raise BadInput(f"{row.where}: rank {beyond[0]} does not exist; "
                       f"allowed: 0 to {instance.num_ranks - 1}")  # fmt: skip
    return [np.asarray(row.ranks, dtype=np.int64)]


def _short(ranks: Sequence[int]) -> str:
    from milp_planner.drawing.units import show_ranks

    return show_ranks(list(ranks), -1)
