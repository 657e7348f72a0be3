"""The field tables of docs/inputs.md, made from the classes so that they cannot drift.

``python -m docs.generate.inputs docs/inputs.md`` renews the tables in place; each stands
between ``<!-- fields: CLASS -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from milp_planner.inputs import access, cluster, constraints, interconnect, model, ssd, two_d
from milp_planner.inputs.spec import Spec

CLASSES: dict[str, type[Spec]] = {
    cls.__name__: cls
    for cls in (
        model.Model,
        model.Workload,
        model.DensePart,
        model.OutsideEmbeddings,
        model.HostMemory,
        model.Table,
        access.Unknown,
        access.Zipf,
        access.Histogram,
        access.TopIds,
        access.HotId,
        access.MissRate,
        access.Sample,
        access.Frequency,
        access.MeasuredSkew,
        access.WorstBatch,
        constraints.Constraints,
        constraints.PinSpec,
        cluster.Cluster,
        cluster.Machine,
        cluster.Rank,
        ssd.Ssd,
        ssd.KeyValue,
        cluster.Reservations,
        interconnect.Interconnect,
        interconnect.Domains,
        two_d.TwoD,
    )
}
"""Every class of the two files, by name."""

KINDS = (
    access.Zipf, access.Histogram, access.TopIds, access.MissRate, access.Sample, access.Frequency,
)  # fmt: skip
"""Access statistics that say more than ``Unknown``."""

_SECTION = re.compile(r"(<!-- fields: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def field_table(cls: type[Spec]) -> str:
    """A Markdown table of a class's fields: name, default, allowed names, meaning and unit.

    Kinds of access statistics leave out what all have, which the table of ``Unknown`` says.
    """
    common = set(access.Unknown.model_fields) if cls in KINDS else set()
    rows = ["| field | default | meaning |", "|---|---|---|"]
    for name, info in cls.model_fields.items():
        if name in common:
            continue
        text = " ".join((info.description or "").split())  # a table's row is one line
        meaning = f"{text}{_choices(info)}".replace("|", "\\|")
        rows.append(f"| `{info.alias or name}` | {_default(info)} | {meaning} |")
    return "\n".join(rows) + "\n"


def renew(text: str) -> str:
    """The document with every field table made anew.

    Raises
    ------
    KeyError
        When the document names a class that is not in ``CLASSES``.
    """
    return _SECTION.sub(
        lambda section: f"{section[1]}{field_table(CLASSES[section[2]])}{section[3]}", text
    )


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    return f"`{_plain(info.default)}`" if info.default not in ((), "") else "empty"


def _plain(value: Any) -> str:
    if value == constraints.TENTHS:
        return "tenths"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, Spec):
        return str(getattr(value, "kind", "see below"))
    if isinstance(value, tuple):
        return ", ".join(_plain(each) for each in value)
    if isinstance(value, Fraction):
        return str(value)
    return f"{value}"


def _choices(info: FieldInfo) -> str:
    names = _literals(info.annotation)
    return f" One of {', '.join(f'`{name}`' for name in names)}." if len(names) > 1 else ""


def _literals(annotation: Any) -> tuple[Any, ...]:
    """The names a field may take, through lists and options but not through classes."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return ()
    for argument in get_args(annotation):
        if names := _literals(argument):
            return names
    return ()


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(renew(document.read_text("utf-8")), "utf-8")
