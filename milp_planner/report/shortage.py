"""Why nothing fits, as figures read from a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Tier:
    """One resource, the others left as they are.

    Attributes
    ----------
    resource, scope : str
    smallest, largest : int
        Capacity of its places now.
    needed : int or None
        Least capacity at every place with which a plan exists; None: none is known.
    short_by : int or None
        What the smallest place lacks.
    helps : bool
        False: proved that no capacity of this resource alone helps.
    proved : bool
        Whether ``needed`` is exact, or what ``helps`` says is certain.
    """

    resource: str
    scope: str
    smallest: int
    largest: int
    needed: int | None
    short_by: int | None
    helps: bool
    proved: bool
    at_least: int | None = None
    """Proved: less than this is never enough."""
    memory: int | None = None
    """Bytes to write into the cluster's file, reservations included; None outside ``plan``."""


@dataclass(frozen=True)
class ShortageInfo:
    """All answers to an infeasible plan.

    Attributes
    ----------
    tiers : tuple of Tier
    drop : tuple of str or None
        Tables whose removal suffices; ``drop_proved``: no fewer do.
    drop_impossible : bool
        Proved: dropping tables never suffices.
    conflict_tables, conflict_constraints : tuple of str
        Tables and constraints without a plan among themselves; empty when none was isolated.
    irreducible : bool
        Whether leaving out any one of them leaves a plan.
    smallest : bool
        Whether no fewer tables conflict.
    """

    tiers: tuple[Tier, ...]
    drop: tuple[str, ...] | None
    drop_proved: bool
    drop_impossible: bool
    conflict_tables: tuple[str, ...]
    conflict_constraints: tuple[str, ...]
    irreducible: bool
    smallest: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def shortage_of(detail: Mapping[str, Any]) -> ShortageInfo | None:
    """The figures of ``Outcome.detail``; None where no diagnosis was made."""
    diagnosis = detail.get("diagnosis")
    if not isinstance(diagnosis, Mapping):
        return None
    drop, conflict = diagnosis["drop"], diagnosis["conflict"] or {}
    return ShortageInfo(
        tiers=tuple(_tier(each, diagnosis.get("advice", {})) for each in diagnosis["capacities"]),
        drop=None if drop["tables"] is None else tuple(drop["tables"]),
        drop_proved=drop["proved"],
        drop_impossible=drop["impossible"],
        conflict_tables=tuple(conflict.get("tables", ())),
        conflict_constraints=tuple(conflict.get("constraints", ())),
        irreducible=conflict.get("irreducible", False),
        smallest=conflict.get("smallest", False),
    )


def _tier(entry: Mapping[str, Any], advice: Mapping[str, Any]) -> Tier:
    return Tier(
        resource=entry["resource"],
        scope=entry["scope"],
        smallest=min(entry["capacity"]),
        largest=max(entry["capacity"]),
        needed=entry["least"],
        short_by=entry["short_by"],
        helps=not entry["impossible"],
        proved=entry["proved"],
        at_least=entry["bound"],
        memory=advice.get(entry["resource"]),
    )
