"""Tables and figure of the newest CPU result: ``python benchmarks/routing/tables.py``.

Writes the marked blocks of docs/routing/speed.md and draws docs/figures/routing-cpu.svg; with
``--check`` the exit code tells whether the page is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command, stored

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
Cell = dict[str, Any]
PAGE = ROOT / "docs" / "routing" / "speed.md"


def one_thread(cells: list[Cell]) -> str:
    """Roundrobin on one thread, a line a cell."""
    lines = [
        "| keys | row length | ranks | FBGEMM Mkeys/s | ours Mkeys/s | ratio (median) | "
        "(min – max) | by processor time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in cells:
        if c["threads"] == 1 and c["rule"] == "roundrobin" and c["fbgemm_mkeys_s"]:
            lines.append(
                f"| {c['keys']:,} | {c['row_length']} | {c['ranks']} | {c['fbgemm_mkeys_s']:.1f} | "
                f"{c['ours_mkeys_s']:.1f} | {c['ratio_median']:.2f} | {c['ratio_min']:.2f} – "
                f"{c['ratio_max']:.2f} | {c['cpu_ratio_median']:.2f} |"
            )
    return "\n".join(lines)


def all_cores(cells: list[Cell]) -> str:
    """Roundrobin on all cores."""
    lines = ["| keys | row length | ranks | threads | FBGEMM | ours | ratio |", "|---" * 7 + "|"]
    lines += [
        f"| {c['keys']:,} | {c['row_length']} | {c['ranks']} | {c['threads']} | "
        f"{c['fbgemm_mkeys_s']:.1f} | {c['ours_mkeys_s']:.1f} | {c['ratio_median']:.2f} |"
        for c in cells
        if c["threads"] > 1
    ]
    return "\n".join(lines)


def other_rules(cells: list[Cell]) -> str:
    """Every rule at one shape, on one thread."""
    lines = ["| dist_type | ranks | FBGEMM | ours | ratio |", "|---" * 5 + "|"]
    for c in cells:
        if c["threads"] == 1 and (c["rule"] != "roundrobin" or c["ranks"] == 7):
            theirs = f"{c['fbgemm_mkeys_s']:.1f}" if c["fbgemm_mkeys_s"] else "has no such rule"
            ratio = f"{c['ratio_median']:.2f}" if c["ratio_median"] else ""
            lines.append(
                f"| {c['rule']} | {c['ranks']} | {theirs} | {c['ours_mkeys_s']:.1f} | {ratio} |"
            )
    return "\n".join(lines)


def kjt(result: dict[str, Any]) -> str:
    """KeyedJaggedTensors by TorchRec's call and by ours."""
    where, shared = result["environment"], ""
    if where["load_average"][0] > where["cores"] + 1:
        shared = " **The machine was shared with other work: only the ratios mean something.**"
    names = ("samples", "ids a bag", "ranks", "dist_type", "keys", "TorchRec, ms", "ours, ms")
    lines = [
        f"Measured {where['date']} on {where['processor']}, one thread, {result['runs']} "
        f"alternated pairs.{shared}",
        "",
        f"| {' | '.join(names)} | ratio (median) | (min – max) |",
        "|---" * 9 + "|",
    ]
    for c in result["cells"]:
        cells = [f"{c['batch']:,}", str(c["pooling"]), str(c["ranks"]), c["rule"], c["dtype"]]
        if c["torchrec_ms"] is None:
            cells += ["has no such rule", f"{c['ours_ms']:.1f}", "", ""]
        else:
            cells += [f"{c[name]:.1f}" for name in ("torchrec_ms", "ours_ms", "ratio_median")]
            cells.append(f"{c['ratio_min']:.1f} – {c['ratio_max']:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(result: dict[str, Any]) -> None:
    """Rates over row length, one panel a number of ranks."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    largest = max(c["keys"] for c in result["cells"]) * 0.9
    chosen = [c for c in result["cells"] if c["threads"] == 1 and c["rule"] == "roundrobin"
              and c["keys"] >= largest and c["ranks"] in (8, 64)]  # fmt: skip
    rcParams.update({"svg.hashsalt": "routing", "svg.fonttype": "none"})
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axis, ranks in zip(figure.subplots(1, 2, sharey=True), (8, 64), strict=True):
        rows = sorted((c for c in chosen if c["ranks"] == ranks), key=lambda c: c["row_length"])
        lengths = [c["row_length"] for c in rows]
        axis.plot(lengths, [c["ours_mkeys_s"] for c in rows], "o-", label="numba path")
        axis.plot(lengths, [c["fbgemm_mkeys_s"] for c in rows], "s--", label="FBGEMM")
        axis.set(title=f"{ranks} ranks", xscale="log", xlabel="keys a row", ylim=(0, None))
    figure.axes[0].set_ylabel("million keys/s, one thread")
    figure.axes[0].legend(frameon=False)
    figure.savefig(ROOT / "docs" / "figures" / "routing-cpu.svg", metadata={"Date": None})


def environment(result: dict[str, Any]) -> str:
    """Where and when, in a sentence."""
    where = result["environment"]
    load = where["load_average"][1]  # what ran just before counts, too
    shared = (
        f" **The machine was shared with other work (load average {load:.0f} on {where['cores']} "
        "cores)**, so absolute rates are low and single ratios vary; both ran under the same load, "
        "call by call."
        if load > where["cores"] + 1
        else ""
    )
    return (
        f"Measured {where['date']} on {where['processor']}, {where['cores']} cores, Python "
        f"{where['python']}, NumPy {where['numpy']}, numba {where['numba']}, torch "
        f"{where['torch']}.{shared}"
    )


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """Text of every block of the page, by name."""
    return {
        "environment": environment(result), "one thread": one_thread(result["cells"]),
        "all cores": all_cores(result["cells"]), "rules": other_rules(result["cells"]),
        "kjt": kjt(stored(HERE / "results" / "kjt")),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks, draw))
