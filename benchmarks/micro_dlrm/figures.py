"""Tables and figure of the newest result: ``python benchmarks/micro_dlrm/figures.py``.

Writes the marked blocks of docs/micro-dlrm.md and draws docs/figures/micro-dlrm.svg;
with ``--check`` the exit code tells whether the page is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.micro_dlrm.contract import share
from benchmarks.pages import command

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "micro-dlrm.md"
PARTS = ("hash", "lookup", "join", "mlp", "update")


def environment(result: dict[str, Any]) -> str:
    """Where and when, and the ceilings."""
    where, top = result["machine"], result["ceilings"]
    busy = ""
    if where["load_average"] > where["cores"]:
        busy = f" **The machine was shared with other work (load {where['load_average']:.0f}).**"
    cache = where["last_level_cache"]
    held = f", {cache / 2**20:.0f} MiB last-level cache" if cache else ""
    return (
        f"Measured {where['date']} on {where['processor']}, {where['threads']} of "
        f"{where['cores']} cores{held}, torch {where['torch']}, {result['rounds']} rounds. "
        f"Ceilings: {top['bandwidth'] / 1e9:.3g} GB/s (triad), {top['flops'] / 1e9:.3g} Gflop/s "
        f"(matrix product).{busy}"
    )


def pair(result: dict[str, Any]) -> str:
    """Both models forward and in training: shares of the step, bytes a second, regime."""
    names = ("model", "step", "time", "tables", *PARTS, "bytes/s", "lookups' bytes/s", "regime")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for step in ("forward", "training"):
        for name, row in result[step].items():
            shares = [f"{share(row, p):.0%}" if p in row["parts"] else "" for p in PARTS]
            cells = [name, step, f"{1e3 * row['seconds']:.2f} ms",
                     _bytes(row["working_set_bytes"]), *shares]  # fmt: skip
            if "regime" in row:
                cells += [f"{row['bytes_per_second'] / 1e9:.2g} GB/s",
                          f"{row['lookup_bytes_per_second'] / 1e9:.2g} GB/s",
                          f"{row['regime']}, {row['of_ceiling']:.0%} of its ceiling"]  # fmt: skip
            else:
                cells += ["", "", ""]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _bytes(count: int) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{count / 1e6:.3g} MB"


def contract(result: dict[str, Any]) -> str:
    """The claims, and whether they hold here."""
    lines = ["| claim | here | measured | why |", "|---" * 4 + "|"]
    lines += [
        f"| {c['claim']} | **{'holds' if c['holds'] else 'does not hold'}** | {c['measured']} | "
        f"{c['why']} |"
        for c in result["claims"]
    ]
    return "\n".join(lines)


def show(result: dict[str, Any]) -> str:
    """What the command prints: the page's blocks."""
    return "\n\n".join(blocks(result).values())


def draw(result: dict[str, Any]) -> None:
    """The transition: share of the lookups, and their bytes a second, over rows and width."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "micro-dlrm", "svg.fonttype": "none", "font.size": 8})
    figure = Figure(figsize=(8, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for width in sorted({row["width"] for row in result["sweep"]}):
        rows = sorted((r for r in result["sweep"] if r["width"] == width), key=lambda r: r["rows"])
        size = [row["working_set_bytes"] / 2**20 for row in rows]
        left.plot(size, [100 * share(row, "lookup") for row in rows], "o-", markersize=3,
                  label=f"{width} floats")  # fmt: skip
        right.plot(size, [row["lookup_bytes_per_second"] / 1e9 for row in rows], "o-", markersize=3)
    left.axhline(70, color="black", linewidth=0.8, linestyle=":")
    right.axhline(result["ceilings"]["bandwidth"] / 1e9, color="black", linewidth=0.8,
                  linestyle=":")  # fmt: skip
    cache = result["machine"]["last_level_cache"]
    for axis in (left, right):
        axis.set(xscale="log", xlabel="table, MiB", ylim=(0, None))
        if cache:
            axis.axvline(cache / 2**20, color="black", linewidth=0.5)
    left.set(ylabel="lookups, % of the forward step", ylim=(0, 100), title="dotted: claimed, 70%")
    right.set(ylabel="GB/s of rows looked up", title="dotted: triad")
    left.legend(frameon=False, title="row width", loc="upper left", ncols=2)
    figure.savefig(ROOT / "docs" / "figures" / "micro-dlrm.svg", metadata={"Date": None})


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """Text of every block of the page, by name."""
    return {"environment": environment(result), "pair": pair(result), "contract": contract(result)}


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks, draw))
