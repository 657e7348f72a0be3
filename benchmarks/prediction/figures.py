"""Figure and tables of the newest result: ``python benchmarks/prediction/figures.py``.

Writes the marked blocks of docs/trust/time.md and draws docs/figures/prediction.svg; with
``--check`` the exit code tells whether the page is up to date.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "trust" / "time.md"
EMBEDDING, STEP = ("lookup", "update"), ("lookup", "update", "dense")
Row = dict[str, Any]
Floats = np.ndarray[Any, np.dtype[np.float64]]


def errors(rows: list[Row], parts: tuple[str, ...], by: str = "predicted") -> Floats:
    """Predicted over measured, less 1, of the sum of some parts."""
    return np.array(
        [sum(r[by][p] for p in parts) / sum(r["measured"][p] for p in parts) - 1 for r in rows]
    )


def environment(result: dict[str, Any]) -> str:
    """Where and when, in a sentence, and whether the machine was busy."""
    where = result["machine"]
    load = result["load_average"]
    busy = (
        f" **The machine was shared with other work (load average {load:.0f}).**"
        if load > where["threads"] + 1 else ""
    )  # fmt: skip
    left = result["drawn"] - len(result["steps"])
    noisy = f"; {left} of {result['drawn']} steps were too noisy and are left out" if left else ""
    return (
        f"Measured {result['date']} on {where['processor']}, {where['threads']} threads, "
        f"{where['last_level_cache'] / 2**20:.0f} MiB last-level cache, torch {where['torch']}"
        f"{noisy}.{busy}"
    )


def table(result: dict[str, Any]) -> str:
    """Error distribution of the held-out steps beside the machine's own."""
    rows = result["steps"]
    repeat = np.array([row["repeat"] for row in rows])
    lines = [
        f"| {len(rows)} held-out steps | median | 90th percentile | worst |", "|---" * 4 + "|",
        _line("**step time, predicted against measured**", errors(rows, STEP)),
        _line("lookups and updates of the tables", errors(rows, EMBEDDING)),
        _line("lookups alone", errors(rows, ("lookup",))),
        _line("updates alone", errors(rows, ("update",))),
        _line("MLPs, joining, their gradients", errors(rows, ("dense",))),
        "| goal for the step | 10% | 25% | |",
        _line("the machine itself: odd against even rounds", repeat),
        _line("lookups and updates without the step's terms, by bandwidths",
              errors(rows, EMBEDDING, "bandwidths_alone")),
    ]  # fmt: skip
    return "\n".join(lines)


def _line(name: str, values: Floats) -> str:
    shown = [f"{v:.1%}" for v in np.percentile(np.abs(values), (50, 90, 100))]
    return f"| {name} | {' | '.join(shown)} |"


KINDS = {
    "SGD": "sgd", "row-wise Adagrad": "rowwise_adagrad", "Adam": "adam",
    "Adagrad, which no calibration measures": "adagrad",
}  # fmt: skip


def draw(result: dict[str, Any]) -> None:
    """Predicted over measured, and the distribution of the errors."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "prediction", "svg.fonttype": "none", "font.size": 8})
    figure = Figure(figsize=(8, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = result["steps"]
    for name, marker in zip(KINDS, "os^D", strict=True):
        chosen = [row for row in rows if row["optimizer"] == KINDS[name]]
        pairs = [[1e3 * sum(r[by][p] for p in STEP) for r in chosen]
                 for by in ("measured", "predicted")]  # fmt: skip
        left.plot(*pairs, marker, markersize=3, label=name.split(",")[0])
    times = [1e3 * sum(r["measured"].values()) for r in rows]
    span = np.array([min(times), max(times)])
    left.plot(span, span, color="black", linewidth=0.8)
    left.fill_between(span, span / 1.25, span * 1.25, color="black", alpha=0.08, label="± 25%")
    left.set(xscale="log", yscale="log", xlabel="measured step, ms", ylabel="predicted step, ms")
    left.legend(frameon=False)
    for values, label in (
        (errors(rows, STEP), "step"),
        (errors(rows, EMBEDDING), "lookups and updates"),
        (errors(rows, EMBEDDING, "bandwidths_alone"), "the same by bandwidths alone"),
        ([r["repeat"] for r in rows], "machine: odd against even rounds"),
    ):
        right.step(100 * np.sort(np.abs(values)), 100 * np.arange(1, len(rows) + 1) / len(rows),
                   where="post", label=label)  # fmt: skip
    right.set(xlabel="relative difference, % (below)", ylabel="share of the steps, %",
              xlim=(0, 100), ylim=(0, 101))  # fmt: skip
    right.legend(frameon=False, loc="lower right")
    figure.savefig(ROOT / "docs" / "figures" / "prediction.svg", metadata={"Date": None})


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """Text of every block of the page, by name."""
    return {"environment": environment(result), "errors": table(result)}


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks, draw))
