"""What a certified bound counts beyond even ranks, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from formulations.result.certificate import Certificate

#: By what a certificate uses, in the order in which they are named.
GROUNDS = {
    "peaks": "phases that cannot all be even at once",
    "functions": "how many large shards a rank has room for",
    "pattern": "what single ranks can hold",
    "machine": "machines apart",
    "largest_cost": "the largest shard of a table",
    "capacity": "limited memory",
    "fusion": "fused tables that share a ratio",
    "moved": "limits on moves",
}


def grounds(certificate: Certificate) -> tuple[str, ...]:
    """Why the bound is above what even ranks with enough memory would cost: the kinds of rows and
    cases that its proof applies, in words."""
    used = {index for node in certificate.nodes for index in node.get("use", [])}
    rows = [row for index in used for row in certificate.vectors[index] if row["times"]]
    found = {kind for row in rows for kind in _of_row(row)}
    found |= {kind for node in certificate.nodes for kind in _of_node(node)}
    return tuple(words for kind, words in GROUNDS.items() if kind in found)


def _of_row(row: dict[str, Any]) -> Iterator[str]:
    kind = row["row"]
    yield "capacity" if kind == "largest_use" else "moved" if "moved" in kind else kind
    if "machine" in row:
        yield "machine"


def _of_node(node: dict[str, Any]) -> Iterator[str]:
    if "cuts" in node:
        yield "peaks"
    if "machines" in node:
        yield "machine"
    if "pack" in node:
        yield "pattern"
