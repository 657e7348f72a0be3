"""``milp-planner init`` and ``list``: write starter files, and list everything that ships."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from milp_planner.cli import console
from milp_planner.cli.options import JsonOption, argument
from milp_planner.files import check_absent, write_together

FolderArgument = Annotated[Path, argument("[FOLDER]", "Folder for the files.")]


def init(folder: FolderArgument = Path(), json: JsonOption = False) -> None:
    """Write commented starter files.

    Creates a model.yaml and a cluster.yaml to start from; nothing is overwritten.
    """
    written = [str(path) for path in write_starters(folder)]
    lines = [f"written: {path}" for path in written]
    lines.append(f"next: milp-planner plan {' '.join(sorted(written, reverse=True))}")
    console.tell(json, lambda: {"written": written}, lambda: lines)


STARTERS = ("model.yaml", "cluster.yaml")
"""Names of the starter files."""


def write_starters(folder: str | Path) -> tuple[Path, ...]:
    """Write the files of ``STARTERS`` into a folder."""
    targets = tuple(Path(folder) / name for name in STARTERS)
    for target in targets:
        check_absent(target, "move it away or name another folder")
    starters = files("milp_planner.inputs") / "starters"
    write_together({t: starters.joinpath(t.name).read_text("utf-8") for t in targets})
    return targets


Listed = Literal["models", "clusters", "profiles", "formulations", "suites"]
ListedArgument = Annotated[Listed | None, argument("[KIND]", "What to list; default: everything.")]


def list_shipped(kind: ListedArgument = None, json: JsonOption = False) -> None:
    """List models, clusters, profiles, formulations and suites.

    Every command that takes a model or a cluster accepts these names. A name such as
    generated:tables=1000,seed=0,kind=torchrec generates a model of any size.
    """
    listing = {each: _ROWS[each]() for each in (_ROWS if kind is None else [kind])}
    drawn = (part for name, rows in listing.items() for part in _shown(name, rows))
    console.tell(json, lambda: listing, lambda: drawn)


def _models() -> list[dict[str, Any]]:
    from scenarios import catalog

    rows = []
    for entry in catalog.models():
        model = catalog.find_model(entry.name)
        rows.append(
            {
                "name": entry.name,
                "tables": len(model.tables),
                "weight_bytes": model.weight_bytes,
                "ids_a_sample": round(sum(t.lookups_per_sample for t in model.tables), 3),
                "description": model.description,
            }
        )
    return rows


def _clusters() -> list[dict[str, Any]]:
    from milp_planner.drawing.units import show_bytes
    from scenarios import catalog

    rows = []
    for entry in catalog.clusters():
        cluster = catalog.find_cluster(entry.name)
        hbm = sorted({rank.hbm_bytes for rank in cluster.ranks})
        ddr = sorted({machine.ddr_bytes for machine in cluster.machines})
        rows.append(
            {
                "name": entry.name,
                "machines": len(cluster.machines),
                "ranks": cluster.num_ranks,
                "hbm a rank": "–".join(show_bytes(v) for v in sorted({hbm[0], hbm[-1]})),
                "ddr a machine": "–".join(show_bytes(v) for v in sorted({ddr[0], ddr[-1]})),
                "profile": cluster.profile,
            }
        )
    return rows


def _formulations() -> list[dict[str, Any]]:
    from formulations import registry

    return [
        {"name": f.name, "proves": f.proves, "what": f.summary}
        for f in registry.FORMULATIONS.values()
    ]


def _profiles() -> list[dict[str, Any]]:
    from milp_planner.pricing import profile
    from milp_planner.pricing.sources import OPERATORS

    read = {name: profile.load_profile(name) for name in profile.profile_names()}
    return [
        {
            "name": name,
            "description": each.description,
            "sources": {operator: each.source(operator).to_dict() for operator in OPERATORS},
        }
        for name, each in read.items()
    ]


def _suites() -> list[dict[str, Any]]:
    from scenarios.batch import load_suite, suites

    read = {name: load_suite(path) for name, path in suites().items()}
    return [{"name": name, "description": suite.description} for name, suite in read.items()]


#: Plain rows of each kind; each starts with ``name``.
_ROWS = {
    "models": _models,
    "clusters": _clusters,
    "profiles": _profiles,
    "formulations": _formulations,
    "suites": _suites,
}


def _shown(title: str, rows: list[dict[str, Any]]) -> Iterator[Any]:
    """The list; below the profiles, where each operator's price comes from on each hardware."""
    matrix = {row["name"]: row.pop("sources") for row in rows if "sources" in row}
    yield _draw(title, rows)
    if matrix:
        yield _matrix(matrix)


SIGNS = {"measured": "M", "interpolated": "I", "data_sheet": "D", "assumed": "·"}
LEGEND = (
    "M: measured there; M32: in fp32, other types are interpolated; I: interpolated between "
    "measurements; D: data sheet, or the bandwidth that a cluster states; ·: assumed, or carried "
    "over from other hardware. What was measured is in --json."
)


def _matrix(sources: dict[str, dict[str, Any]]) -> Any:
    """Operators by profiles, and what the signs mean."""
    from milp_planner.drawing.grid import Grid, headed

    def sign(source: dict[str, Any]) -> str:
        types = "/".join(each.removeprefix("fp") for each in source["dtypes"])
        return SIGNS[source["how"]] + types

    operators = [*next(iter(sources.values()))]
    head = ("operator", *(name.replace("-", "\n") for name in sources))
    rows = [[o.replace("_", " "), *(sign(each[o]) for each in sources.values())] for o in operators]
    return headed("where prices come from, by operator and profile", Grid.plain(head, rows), LEGEND)


def _draw(title: str, rows: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    from milp_planner.drawing.units import show_bytes

    shown = {
        "tables": ("tables", "{:,}".format),
        "weight_bytes": ("weights", show_bytes),
        "ids_a_sample": ("ids a sample", "{:,.0f}".format),
    }
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for key in rows[0] if rows else []:
        name, _ = shown.get(key, (key, str))
        table.add_column(name, overflow="fold", no_wrap=key == "name")
    for row in rows:
        texts = (shown.get(key, (key, str))[1](value) for key, value in row.items())
        table.add_row(*(" ".join(text.split()).split(". ")[0] for text in texts))
    return table
