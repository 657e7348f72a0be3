"""The certificate: a tree of cases and the multipliers that close them (docs/proof.md).

Only how it is written down; :mod:`formulations.proof` makes certificates, and the checker judges
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from formulations.errors import InstanceError

VERSION = 2


@dataclass(frozen=True)
class Certificate:
    """A proof that every plan costs ``target`` or more, or that there is none.

    Attributes
    ----------
    kind : str
        ``bound`` or ``infeasible``.
    target : int or None
        None for ``infeasible``.
    vectors : tuple of dict
        Multipliers of rows, as they stand in the file.
    nodes : tuple of dict
        Cases, the root first.
    """

    kind: str
    target: int | None
    vectors: tuple[dict[str, Any], ...]
    nodes: tuple[dict[str, Any], ...]


def certificate_to_dict(certificate: Certificate) -> dict[str, object]:
    """A certificate as JSON values."""
    target = {} if certificate.target is None else {"target": certificate.target}
    return {
        "version": VERSION,
        "kind": certificate.kind,
        **target,
        "vectors": list(certificate.vectors),
        "nodes": list(certificate.nodes),
    }


def certificate_from_dict(data: object, what: str = "certificate") -> Certificate:
    """Read a certificate back: its outline only, what it says is for the checker.

    ``what`` names the file in error sentences.

    Raises
    ------
    InstanceError
        For another version or kind, or where keys or lists are not those of the page.
    """
    if not isinstance(data, Mapping):
        raise InstanceError(f"{what}: a certificate must be an object, found {data!r}")
    if data.get("version") == 1:
        raise InstanceError(
            f"{what}: its certificate is of version 1, which an earlier release wrote; solve again"
        )
    kind, target = data.get("kind"), data.get("target")
    if data.get("version") != VERSION or kind not in ("bound", "infeasible"):
        raise InstanceError(
            f"{what}: a certificate of version {data.get('version')!r} and kind {kind!r}; "
            f"allowed: version {VERSION}, kind 'bound' or 'infeasible'"
        )
    keys = {"version", "kind", "vectors", "nodes"} | ({"target"} if kind == "bound" else set())
    if set(data) != keys:
        raise InstanceError(
            f"{what}: a certificate has the keys {sorted(keys)}, found {sorted(data)}"
        )
    if kind == "bound" and (isinstance(target, bool) or not isinstance(target, int)):
        raise InstanceError(f"{what}: the target of a certificate must be an integer")
    return Certificate(kind, target, _objects(data, "vectors", what), _objects(data, "nodes", what))


def _objects(data: Mapping[Any, Any], key: str, what: str) -> tuple[dict[str, Any], ...]:
    items = data[key]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InstanceError(f"{what}: {key!r} of a certificate must be a list of objects")
    return tuple(items)
