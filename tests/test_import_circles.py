"""No module imports itself through others, imports for types aside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("formulations", "milp_planner", "cuda_routing", "scenarios")


def modules(root: Path) -> dict[str, Path]:
    """Every module by its name."""
    files = [file for package in PACKAGES for file in (root / package).rglob("*.py")]
    names = [".".join(file.relative_to(root).with_suffix("").parts) for file in files]
    return {name.removesuffix(".__init__"): file for name, file in zip(names, files, strict=True)}


def imports(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports that run with the module: neither those for types nor those inside functions."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports(node.orelse)
        elif isinstance(node, ast.If | ast.Try):
            for part in (node, *getattr(node, "handlers", [])):
                for name in ("body", "orelse", "finalbody"):
                    yield from imports(getattr(part, name, []))


def graph(known: dict[str, Path]) -> nx.DiGraph:
    """Each module with the modules that it imports."""
    found = nx.DiGraph()
    for name, file in known.items():
        for node in imports(ast.parse(file.read_text("utf-8")).body):
            for alias in node.names:
                base = node.module if isinstance(node, ast.ImportFrom) else alias.name
                inner = f"{base}.{alias.name}"
                target = inner if inner in known else base
                if target in known and target != name:
                    found.add_edge(name, target)
    return found


def test_no_module_imports_itself_through_others() -> None:
    """This holds for all modules of the packages."""
    found = graph(modules(ROOT))
    assert found.number_of_edges() > 500
    circles = [sorted(c) for c in nx.strongly_connected_components(found) if len(c) > 1]
    assert not circles


def test_a_circle_is_found(tmp_path: Path) -> None:
    """A circle of two modules is found, but not if one imports the other for types only."""
    package = tmp_path / "formulations"
    package.mkdir()
    (package / "one.py").write_text("from formulations import two\n")
    cut = "try:\n    from formulations.one import x\nfinally:\n    pass\n"
    (package / "two.py").write_text(cut)
    one, two = "formulations.one", "formulations.two"
    assert set(graph(modules(tmp_path)).edges) == {(one, two), (two, one)}
    (package / "two.py").write_text("if TYPE_CHECKING:\n    from formulations.one import x\n")
    assert set(graph(modules(tmp_path)).edges) == {(one, two)}
