"""The statistics that TorchRec prints for a plan, read back table by table.

The layout is that of ``EmbeddingStats`` of TorchRec (``planner/stats.py``, 1.0 to 1.9): between
``# … #`` one row a table under the heading *Parameter Info*, columns apart by two blanks or more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import choice

HEADING = "Parameter Info:"
SHARDING = {
    "DP": "data_parallel",
    "TW": "table_wise",
    "CW": "column_wise",
    "RW": "row_wise",
    "TWRW": "table_row_wise",
    "TWCW": "table_column_wise",
    "GS": "grid_shard",
}
MODES = {
    "dense": "HBM_ONLY",
    "fused": "HBM_ONLY",
    "fused_uvm": "HOST_ONLY",
    "fused_uvm_caching": "CACHING",
}
_NEEDED = ("FQN", "Sharding", "Compute Kernel", "Emb Dim (CW Dim)", "Hash Size", "Ranks")
_APART = re.compile(r"\s{2,}")


@dataclass(frozen=True)
class StatsTable:
    """One row of the printout.

    Attributes
    ----------
    where : str
        File and line, for sentences.
    name : str
        The module's path and the table, as printed.
    sharding_type, mode : str
        In our words.
    ratio : Fraction or None
        Cache load factor of CACHING.
    rows, dim : int
    width : int or None
        Columns of a shard, where columns are cut.
    ranks : str
        As printed, such as ``0-3,6``; TorchRec sorts them.
    cell : dict of str to str
        All cells by their heading.
    """

    where: str
    name: str
    sharding_type: str
    mode: str
    ratio: Fraction | None
    rows: int
    dim: int
    width: int | None
    ranks: str
    cell: dict[str, str]


def is_stats(text: str) -> bool:
    """Whether a text is such a printout."""
    return text.lstrip().startswith("#") and HEADING in text


def read_stats(text: str, what: str) -> list[StatsTable]:
    """Every table of a printout.

    Parameters
    ----------
    text : str
    what : str
        What sentences call the source.

    Raises
    ------
    BadInput
        For a printout without its table of parameters, or a cell that cannot be understood.
    """
    lines = _cells(text)
    header: list[str] | None = None
    found = []
    for number, cells in lines:
        if cells[0] == "FQN":
            header = cells
            _check_header(header, f"{what}:{number}")
        elif header is not None and not set("".join(cells)) <= {"-"}:
            if len(cells) != len(header):
                break
            found.append(_table(dict(zip(header, cells, strict=True)), f"{what}:{number}"))
    if header is None:
        raise BadInput(f"{what}: has no table under {HEADING!r}, as TorchRec's statistics have")
    if not found:
        raise BadInput(f"{what}: lists no table under {HEADING!r}")
    return _numbered(found)


def _numbered(tables: list[StatsTable]) -> list[StatsTable]:
    """A name that returns, as in printouts made anonymous, gets ``_2``, ``_3`` … appended."""
    seen: dict[str, int] = {}
    found = []
    for table in tables:
        seen[table.name] = seen.get(table.name, 0) + 1
        times = seen[table.name]
        found.append(table if times == 1 else replace(table, name=f"{table.name}_{times}"))
    return found


def _cells(text: str) -> Iterator[tuple[int, list[str]]]:
    """Numbers and cells of the lines below the heading, until a line that is empty."""
    below = False
    for number, line in enumerate(text.splitlines(), start=1):
        inner = line.strip().strip("#").strip()
        if inner == HEADING:
            below = True
        elif below and inner:
            yield number, _APART.split(inner)
        elif below:
            return


def _check_header(header: list[str], where: str) -> None:
    for name in _NEEDED:
        if name not in header:
            raise BadInput(f"{where}: the printout has no column {name!r}")


def _table(cell: dict[str, str], where: str) -> StatsTable:
    sharding, kernel = cell["Sharding"], cell["Compute Kernel"]
    for value, allowed, name in ((sharding, SHARDING, "Sharding"), (kernel, MODES, "kernel")):
        if value not in allowed:
            raise BadInput(f"{where}: {name} {value!r}; {choice(value, list(allowed))}")
    mode = MODES[kernel]
    dim, _, width = cell["Emb Dim (CW Dim)"].partition(" ")
    return StatsTable(
        where=where,
        name=cell["FQN"],
        sharding_type=SHARDING[sharding],
        mode=mode,
        ratio=_ratio(cell.get("Cache Load Factor", ""), where) if mode == "CACHING" else None,
        rows=_whole(cell["Hash Size"], "Hash Size", where),
        dim=_whole(dim, "Emb Dim", where),
        width=_whole(width.strip("()"), "CW Dim", where) if width else None,
        ranks=cell["Ranks"],
        cell=cell,
    )


def _whole(text: str, what: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise BadInput(f"{where}: {what} is {text!r}; needs a whole number")
    return int(text)


def _ratio(text: str, where: str) -> Fraction:
    try:
        ratio = Fraction(text).limit_denominator(100)
    except (ValueError, ZeroDivisionError):
        ratio = Fraction(0)
    if not 0 < ratio < 1:
        raise BadInput(f"{where}: Cache Load Factor is {text!r}; needs one between 0 and 1")
    return ratio
