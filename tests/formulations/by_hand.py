"""Instances and certificates written by hand, and the stand-alone checker's verdicts on them."""

import json
from pathlib import Path
from typing import Any

from formulations import checker
from tests.formulations.certificates import rows

Document = dict[str, Any]
TWO = {"machines": [[0, 1]]}
ALL = {"cost": {"busiest_rank": 1}}
PHASES = {"phases": ["compute", "exchange"]}


def shard(cost: int | list[int], move_bytes: int = 0, repeat: int = 1, **use: int) -> Document:
    """A shard with one cost a phase."""
    costs = cost if isinstance(cost, list) else [cost]
    return {"cost": costs, "use": use, "move_bytes": move_bytes, "repeat": repeat}


def option(name: str, *blocks: Document, **fusion: int) -> Document:
    """An option; ``group=level`` fuses it."""
    item: Document = {"name": name, "blocks": list(blocks)}
    for group, level in fusion.items():
        item["fusion"] = {"group": group, "level": level}
    return item


def block(where: str | list[int], *shards: Document, **rest: Any) -> Document:
    """A block."""
    return {"where": where, "shards": list(shards), **rest}


def instance(
    tables: list[list[Document]], objective: str = "busiest_rank", **more: Any
) -> Document:
    """An instance of two machines of two ranks, unless ``machines`` says otherwise."""
    document: Document = {
        "format": "milp-planner-instance/1", "machines": [[0, 1], [2, 3]], "phases": ["p"],
        "objective": objective, "resources": [],
        "tables": [{"name": f"t{i}", "options": options} for i, options in enumerate(tables)],
    }  # fmt: skip
    document |= more
    return document | {"ranks": sum(map(len, document["machines"]))}


def bound(target: int, *vectors: Document, nodes: list[Document] | None = None) -> Document:
    """A certificate of kind bound; one node that uses all vectors unless nodes are given."""
    nodes = nodes if nodes is not None else [{"use": list(range(len(vectors)))}]
    document = {"version": 3, "kind": "bound", "target": target}
    return document | {"vectors": [rows(vector) for vector in vectors], "nodes": nodes}


def infeasible(*vectors: Document, nodes: list[Document] | None = None) -> Document:
    """A certificate of kind infeasible."""
    document = bound(0, *vectors, nodes=nodes) | {"kind": "infeasible"}
    del document["target"]
    return document


def peaks(weights: list[list[int]], **more: Any) -> Document:
    """A row of peaks of compute and exchange."""
    row = {"row": "peaks", "first": ["compute"], "second": ["exchange"], "step": 1, "most": 4,
           "each": 1, "times": 1}  # fmt: skip
    return row | {"weights": weights} | more


def cut(phase: str, at: int, **more: Any) -> Document:
    """A node that splits by the peak of one phase."""
    return {"peak": [phase], "cuts": [at], **more}


def proof(target: int, rows: list[Document], nodes: list[Document] | None = None) -> Document:
    """A certificate with one row a vector; one node with all of them unless nodes are given."""
    nodes = nodes or [{"use": list(range(len(rows)))}]
    return {"version": 3, "kind": "bound", "target": target, "vectors": [[row] for row in rows],
            "nodes": nodes}  # fmt: skip


def whole(*costs: int, **more: Any) -> list[Document]:
    """A table with one shard on any rank."""
    return [option("whole", block("any_rank", shard(list(costs)), **more))]


def proves(document: Document, certificate: Document) -> bool:
    """Whether the checker accepts the certificate."""
    return checker.Proof(checker.Instance(document), certificate).open_case() is None


def exactly(document: Document, certificate: Document) -> None:
    """Assert that the certificate proves its target and not one more."""
    assert proves(document, certificate)
    assert not proves(document, certificate | {"target": certificate["target"] + 1})


def worked_example() -> tuple[Document, Document]:
    """The instance and the certificate of docs/proof.md, An example."""
    fast = option("fast", block("any_rank", shard(8, hbm=6)))
    slow = option("slow", block("any_rank", shard(14, hbm=1)))
    hbm = [{"name": "hbm", "scope": "rank", "capacity": 9}]
    certificate = bound(22, ALL, {"capacity": {"hbm": 1}}, nodes=[
        {"table": 0, "options": [[1], [0]]}, {"use": [0, 1]},
        {"table": 1, "options": [[1], [0]]}, {"use": [0, 1]},
        {"table": 2, "options": [[1], [0]]}, {"use": [0, 1]}, {"use": [1]},
    ])  # fmt: skip
    return instance([[fast, slow]] * 4, resources=hbm, **TWO), certificate


def on_page(title: str) -> Document:
    """The certificate of a section of docs/proof.md."""
    page = (Path(__file__).parents[2] / "docs" / "proof.md").read_text()
    text = page.split(f"## {title}")[1].split("```")[1]
    found: Document = json.loads(text.removeprefix("json"))
    return found
