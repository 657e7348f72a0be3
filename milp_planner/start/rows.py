"""A plan to start from, table by table: plan.json, CSV, TorchRec's printout, or pins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import get_args

from formulations.instance import strict_json
from milp_planner.errors import BadInput, Problem
from milp_planner.inputs.constraints import DistType, Mode, PinSpec, ShardingType
from milp_planner.inputs.problems import choice, one_of
from milp_planner.inputs.quantities import parse_ratio
from milp_planner.inputs.strict_yaml import csv_lines
from milp_planner.plans.placement import Plan
from milp_planner.plans.plan_file import is_plan, plan_from_dict, read_document
from milp_planner.pricing.options import TIERED
from milp_planner.start.torchrec_stats import StatsTable, is_stats, read_stats

#: A plan object, a file of one, or pins for each table (a trainer's file read back).
StartSource = Plan | str | Path | Mapping[str, PinSpec]
COLUMNS = ("table", "mode", "ratio", "sharding_type", "ranks", "dist_type", "column_width")
#: Columns that a CSV may omit.
OPTIONAL = ("ratio", "ranks", "dist_type", "column_width")
#: Most wrong rows listed; further ones are counted.
MOST_WRONG = 20
FORMS = (
    "a plan.json; TorchRec's ShardingPlan in JSON, as export writes it; a CSV "
    f"with the columns {', '.join(COLUMNS[:5])}; the statistics that TorchRec prints; DLRMv4's "
    "variables, such as EMB_PLACEMENT, EMB_PLACEMENT_OVERRIDES, EMB_SHARDING_OVERRIDES; "
    "TorchEasyRec's config, with feature_configs; dynamicemb's options in JSON, as export writes "
    "them; a gin file of recsys-examples' HSTU trainer"
)
"""Forms of a plan in a file."""
_ALIASES = {"cache_ratio": "ratio", "sharding": "sharding_type", "sharding type": "sharding_type"}


@dataclass(frozen=True)
class StartTable:
    """Where a plan has one table; None for fields that are not given."""

    where: str
    """Name of the row in error messages."""
    table: str
    mode: str
    sharding_type: str
    ratio: Fraction | None = None
    """Cache ratio of HYBRID and CACHING."""
    ranks: tuple[int, ...] | None = None
    """In shard order."""
    dist_type: str | None = None
    column_width: int | None = None
    fusion_caching: bool | None = None
    """The ``caching`` flag of its fusion group."""
    option: str | None = None
    """Its option's name, in a plan of ours."""


def read_start(source: StartSource) -> list[StartTable]:
    """Rows of a plan; BadInput says file and line, what was found, what is allowed.

    The source is a Plan; the path of a plan.json, of a CSV (:func:`read_csv`) or of the statistics
    that TorchRec prints, told apart by their content; or a mapping of table names to pins, as
    returned by :func:`milp_planner.integrations.exports.read`.
    """
    if isinstance(source, Mapping):
        return [_of_pin(name, pin) for name, pin in source.items()]
    if (plan := plan_of(source)) is not None:
        return rows_of(plan)
    path = Path(str(source))
    text = unpacked_text(path)
    if is_stats(text):
        return [_of_stats(row) for row in read_stats(text, str(path))]
    _check_csv(text, path)
    return read_csv(path)


def plan_of(source: StartSource) -> Plan | None:
    """The plan of ours that a source is or holds; None for one of theirs."""
    if isinstance(source, Plan | Mapping):
        return source if isinstance(source, Plan) else None
    path = Path(source)
    if not is_json(unpacked_text(path)):
        return None
    document = read_document(path)
    if not is_plan(document):
        cure = "; in Python, milp_planner.integrations.stated.read_stated reads a trainer's file"
        raise BadInput(f"{path}: is not a plan; allowed: {FORMS}{cure}")
    return plan_from_dict(document, str(path))


def rows_of(plan: Plan) -> list[StartTable]:
    """The tables of a plan of ours."""
    if not plan.tables:
        raise BadInput(
            f"the plan to start from places nothing: its status is {plan.outcome.status}"
        )
    pinned = zip(plan.tables, pins_of(plan).items(), strict=True)
    return [
        replace(_of_pin(name, pin), fusion_caching=t.fusion_caching, option=t.option)
        for t, (name, pin) in pinned
    ]


def pins_of(plan: Plan) -> dict[str, PinSpec]:
    """Everything that a plan decided, table by table."""
    return {
        t.name: PinSpec(
            mode=t.mode,
            sharding_type=t.sharding_type,
            cache_ratio=t.cache_ratio if t.mode in TIERED else None,
            dist_type=t.dist_type,
            column_width=t.column_width if t.column_shards > 1 else None,
            ranks=tuple(rank for block in t.ranks for rank in block),
        )
        for t in plan.tables
    }


def printed_tables(path: Path) -> list[StatsTable]:
    """The tables of a file of TorchRec's printed statistics, plain or gzipped."""
    text = unpacked_text(path)
    if not is_stats(text):
        raise BadInput(
            f"{path}: holds no statistics of TorchRec; allowed: what its planner prints, with "
            "Parameter Info"
        )
    return read_stats(text, str(path))


def unpacked_text(path: Path) -> str:
    """The text of a file, plain or gzipped."""
    try:
        return strict_json.read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: is not UTF-8 text (byte {error.start})") from None


def is_json(text: str) -> bool:
    """Whether a plan's text is a JSON object; no other form begins so."""
    return text.lstrip().startswith("{")


def _check_csv(text: str, path: Path) -> None:
    """BadInput unless the name, or the first line with a name of a column, says that it is CSV."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    cells = {cell.strip(' "').lower() for cell in next(lines, "").split(",")}
    if path.suffix.lower() != ".csv" and cells.isdisjoint((*COLUMNS, *_ALIASES)):
        raise BadInput(f"{path}: is not a plan; allowed: {FORMS}")


def _of_stats(row: StatsTable) -> StartTable:
    return StartTable(
        where=f"{row.where}: table {row.name}",
        table=row.name,
        mode=row.mode,
        sharding_type=row.sharding_type,
        ratio=row.ratio,
        ranks=parse_ranks(row.ranks, row.where),
        column_width=row.width,
    )


def _of_pin(name: str, pin: PinSpec) -> StartTable:
    if pin.mode is None or pin.sharding_type is None:
        raise BadInput(f"the plan to start from: table {name} has no mode or no sharding type")
    return StartTable(
        where=f"table {name}",
        table=name,
        mode=pin.mode,
        sharding_type=pin.sharding_type,
        ratio=pin.cache_ratio,
        ranks=pin.ranks,
        dist_type=pin.dist_type,
        column_width=pin.column_width,
    )


def read_csv(path: Path) -> list[StartTable]:
    """Rows of a CSV with the columns ``table, mode, ratio, sharding_type, ranks``.

    BadInput names every wrong row, one per line.

    Ranks are written as ``0-3,6`` (quoted), ``0 1 2`` or ``all``; ``dist_type`` and
    ``column_width`` may be added.
    """
    rows = [(line, cells) for line, cells in csv_lines(path) if not cells[0].startswith("#")]
    if not rows:
        raise BadInput(f"{path}: has no header; needs {', '.join(COLUMNS[:5])}")
    header, found, wrong = _header(rows[0][1], path), [], []
    for line, cells in rows[1:]:
        try:
            found.append(_row(header, cells, f"{path}:{line}"))
        except BadInput as error:
            wrong.append(str(error))
    refuse(wrong)
    return found


def refuse(wrong: Sequence[str]) -> None:
    """Raise BadInput with every sentence about a wrong row, one per line, if there is any.

    A line break inside a quoted cell is shown as its symbol.
    """
    if wrong:
        wrong = [each.replace("\n", "␊") for each in wrong]
        more = [f"and {len(wrong) - MOST_WRONG} more wrong rows"] * (len(wrong) > MOST_WRONG)
        raise BadInput("\n".join([*wrong[:MOST_WRONG], *more]), [Problem(each) for each in wrong])


def parse_ranks(text: str, where: str) -> tuple[int, ...] | None:
    """``0-3,6`` as (0, 1, 2, 3, 6); None for nothing or ``all``."""
    if text.strip().lower() in ("", "all"):
        return None
    ranks: list[int] = []
    for part in text.replace(";", ",").replace(" ", ",").split(","):
        if part:
            ranks += _run(part, where)
    return tuple(ranks)


def _header(cells: list[str], path: Path) -> list[str]:
    names = [_ALIASES.get(cell.lower(), cell.lower()) for cell in cells]
    for name in names:
        if name not in COLUMNS:
            raise BadInput(f"{path}:1: unknown column {name!r}; {choice(name, COLUMNS)}")
        if names.count(name) > 1:
            raise BadInput(f"{path}:1: column {name!r} occurs twice")
    for name in COLUMNS:
        if name not in names and name not in OPTIONAL:
            raise BadInput(f"{path}:1: column {name!r} is missing; needs table, mode, ratio, "
                           "sharding_type, ranks")  # fmt: skip
    return names


def _row(header: list[str], cells: list[str], where: str) -> StartTable:
    if len(cells) != len(header):
        raise BadInput(f"{where}: {len(cells)} cells under {len(header)} columns "
                       "(quote ranks that contain commas)")  # fmt: skip
    cell = dict(zip(header, cells, strict=True))
    mode = one_of(cell["mode"].upper(), get_args(Mode), f"{where}: mode")
    kind = one_of(cell["sharding_type"].lower(), get_args(ShardingType), f"{where}: sharding_type")
    dist_type = cell.get("dist_type") or None
    if dist_type is not None:
        one_of(dist_type, get_args(DistType), f"{where}: dist_type")
    return StartTable(
        where=f"{where}: table {cell['table']}",
        table=cell["table"],
        mode=mode,
        sharding_type=kind,
        ratio=_ratio(cell.get("ratio", ""), mode, where),
        ranks=parse_ranks(cell.get("ranks", ""), where),
        dist_type=dist_type,
        column_width=_width(cell.get("column_width", ""), where),
    )


def _ratio(text: str, mode: str, where: str) -> Fraction | None:
    """The cache ratio of a tiered mode; HOST_ONLY and HBM_ONLY may repeat their 0 or 1."""
    if mode in TIERED and not text:
        raise BadInput(f"{where}: mode {mode} needs a ratio between 0 and 1")
    if not text:
        return None
    try:
        ratio = parse_ratio(text)
    except ValueError as error:
        raise BadInput(f"{where}: ratio: {error}") from None
    fixed = {"HBM_ONLY": 1, "HOST_ONLY": 0}.get(mode)
    if fixed is None and not 0 < ratio < 1:
        raise BadInput(f"{where}: ratio is {text}; mode {mode} needs one between 0 and 1")
    if fixed is not None and ratio != fixed:
        raise BadInput(f"{where}: ratio is {text}; mode {mode} leaves it blank or {fixed}")
    return ratio if fixed is None else None


def _width(text: str, where: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**31:
        raise BadInput(f"{where}: column_width is {text!r}; needs a whole number of columns")
    return int(text)


def _run(part: str, where: str) -> range:
    first, dash, last = part.partition("-")
    ends = (first, last if dash else first)
    if not all(e.isascii() and e.isdigit() and len(e) <= 6 for e in ends) or int(ends[0]) > int(
        ends[1]
    ):
        raise BadInput(f"{where}: ranks has {part!r}; needs ranks such as 0-3,6 or all")
    return range(int(ends[0]), int(ends[1]) + 1)
