"""The certificate: a tree of cases and the multipliers that close them (docs/proof.md).

This module only reads and writes it; :mod:`formulations.proof` makes certificates, and the checker
judges them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from formulations.errors import InstanceError

VERSION = 3


@dataclass(frozen=True)
class Certificate:
    """A proof that every plan costs at least ``target``, or that there is no plan.

    Attributes
    ----------
    kind : str
        ``bound`` or ``infeasible``.
    target : int or None
        None for ``infeasible``.
    vectors : tuple of list of dict
        Rows with their multipliers, in the form of the file.
    nodes : tuple of dict
        Cases, the root first.
    """

    kind: str
    target: int | None
    vectors: tuple[list[dict[str, Any]], ...]
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
    """Read a certificate. Only its outline is validated; the checker judges the rest.

    ``what`` names the file in error messages.

    Raises
    ------
    InstanceError
        For another version or kind, or unexpected keys or lists.
    """
    if not isinstance(data, Mapping):
        raise InstanceError(f"{what}: a certificate must be an object, found {data!r}")
    version, kind, target = data.get("version"), data.get("kind"), data.get("target")
    if version in (1, 2):
        raise InstanceError(
            f"{what}: its certificate is of version {version}, which an earlier release wrote; "
            "solve again"
        )
    if type(version) is not int or version != VERSION or kind not in ("bound", "infeasible"):
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
    if not isinstance(data["vectors"], list):
        raise InstanceError(f"{what}: 'vectors' of a certificate must be a list")
    vectors = [list(_objects(item, "a vector", what)) for item in data["vectors"]]
    nodes = _objects(data["nodes"], "'nodes'", what)
    return Certificate(kind, target, tuple(vectors), nodes)


def _objects(items: object, name: str, what: str) -> tuple[dict[str, Any], ...]:
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InstanceError(f"{what}: {name} of a certificate must be a list of objects")
    return tuple(items)
