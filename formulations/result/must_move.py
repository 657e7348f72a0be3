"""What must move at least from an earlier plan, as an outcome tells it (docs/proof.md)."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from formulations.errors import InstanceError
from formulations.instance import Instance
from formulations.instance.strict_json import Reader, shown
from formulations.result.certificate import Certificate, certificate_to_dict


class Counted(StrEnum):
    """What is counted of the tables that move."""

    TABLES = "tables"
    BYTES = "bytes"


def limit_of(instance: Instance, counted: Counted) -> int | None:
    """How much may move; None: any amount."""
    if counted == Counted.TABLES:
        return instance.max_moved_tables
    return instance.max_moved_bytes


@dataclass(frozen=True)
class MustMove:
    """What every plan moves at least.

    Attributes
    ----------
    counted : Counted
    least : int
        Tables, or bytes.
    tables : tuple of int
        Those of which the proof speaks.
    apart : bool or tuple of int
        Whether it tells apart the ways to lie of an option that has few: of every table, or of
        these.
    certificate : str
        Of the whole question about them, as gzipped JSON in base64; what it proves is for
        ``verify`` to say.
    goes : tuple of int or None
        Tables whose moves are the least of the pooled question; not in the file.
    """

    counted: Counted
    least: int
    tables: tuple[int, ...]
    apart: bool | tuple[int, ...]
    certificate: str
    goes: tuple[int, ...] | None = None

    def forbids(self, instance: Instance) -> bool:
        """Whether less may move, so that there is no plan."""
        limit = limit_of(instance, self.counted)
        return limit is not None and self.least > limit

    def to_dict(self) -> dict[str, Any]:
        """As in ``Outcome.detail["must_move"]``."""
        return {
            "counted": self.counted.value, "least": self.least, "tables": list(self.tables),
            "apart": list(self.apart) if isinstance(self.apart, tuple) else self.apart,
            "certificate": self.certificate,
        }  # fmt: skip


def forced_of(detail: Mapping[str, Any]) -> list[MustMove]:
    """What must move, from ``Outcome.detail``.

    Raises
    ------
    InstanceError
        When it is malformed.
    """
    found, what = [], "detail.must_move"
    for item in detail.get("must_move", []):
        reader = Reader(item, what, {"counted", "least", "tables", "apart", "certificate"})
        counted = Counted(reader.choice("counted", [each.value for each in Counted]))
        tables = tuple(reader.integers(reader.value("tables"), "tables"))
        apart, text = reader.value("apart"), reader.get("certificate", str)
        if not isinstance(apart, bool | list):
            good = "true, false or a list"
            raise InstanceError(f"{what}: apart must be {good}, found {shown(apart)}")
        if isinstance(apart, list):
            apart = tuple(reader.integers(apart, "apart"))
        found.append(MustMove(counted, reader.integer("least"), tables, apart, text))
    return found


def packed(certificate: Certificate) -> str:
    """A certificate, whose numbers may be large, as text."""
    text = json.dumps(certificate_to_dict(certificate), separators=(",", ":"))
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()
