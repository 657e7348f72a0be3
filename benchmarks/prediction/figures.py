"""Figure and tables of the newest result: ``python benchmarks/prediction/figures.py``.

Writes the marked blocks of docs/trust/prediction.md and draws docs/figures/prediction.svg; with
``--check`` the exit code tells whether the page is up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "trust" / "prediction.md"
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


KINDS: dict[str, Callable[[Row], bool]] = {
    "SGD": lambda r: r["optimizer"] == "sgd",
    "row-wise Adagrad": lambda r: r["optimizer"] == "rowwise_adagrad",
    "Adam": lambda r: r["optimizer"] == "adam",
    "Adagrad, which no calibration measures": lambda r: r["optimizer"] == "adagrad",
    "one table": lambda r: len(r["tables"]) == 1,
    "three or six different tables": lambda r: len(r["tables"]) > 1,
    "tables together below 32 MiB": lambda r: _mib(r) < 32,
    "32 MiB and more": lambda r: _mib(r) >= 32,
}


def _mib(row: Row) -> float:
    return sum(t["rows"] * t["dim"] * 4 for t in row["tables"]) / 2**20


def groups(result: dict[str, Any]) -> str:
    """Where the prediction is off, and in which direction."""
    names = ("held-out steps", "", "step, median error", "step, median signed error",
             "lookups", "updates")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for name, chosen in KINDS.items():
        rows = [row for row in result["steps"] if chosen(row)]
        if rows:
            step = errors(rows, STEP)
            parts = [np.median(errors(rows, (part,))) for part in EMBEDDING]
            shown = [f"{np.median(np.abs(step)):.1%}", f"{np.median(step):+.1%}"]
            shown += [f"{value:+.1%}" for value in parts]
            lines.append(f"| {name} | {len(rows)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def terms(result: dict[str, Any]) -> str:
    """The step's terms as calibrate wrote them."""
    step = result["profile"]["step"]
    passes = {"lookup": step["lookup"], **step["update"]}
    fields = {
        "dispatch a step, µs": lambda t: 1e6 * t["step_seconds"],
        "dispatch a table, µs": lambda t: 1e6 * t["seconds"],
        "an id, ns": lambda t: 1e9 * t["id_seconds"],
        "a byte of a row, ns": lambda t: 1e9 * t["byte_seconds"],
        "a byte of the output, ns": lambda t: 1e9 * t["output_byte_seconds"],
        "a distinct row, ns": lambda t: 1e9 * t["distinct_seconds"],
        "a byte of it, ns": lambda t: 1e9 * t["distinct_byte_seconds"],
        "bytes that starting a missed row costs": lambda t: t["row_bytes"],
    }  # fmt: skip
    sizes = sorted({size for each in passes.values() for size, _ in each["missed"]})
    for size in sizes:
        name = f"a byte that {size / 2**20:.3g} MiB of cache miss, ns"
        fields[name] = lambda t, size=size: 1e9 * dict(map(tuple, t["missed"])).get(size, 0.0)
    lines = [f"| term | {' | '.join(passes)} |", "|---" * (1 + len(passes)) + "|"]
    for name, value in fields.items():
        lines.append(f"| {name} | {' | '.join(f'{value(t):.3g}' for t in passes.values())} |")
    batch = step["batch"]
    lines += [
        "",
        f"A step apart from its tables: {1e6 * batch['seconds']:.3g} µs, "
        f"{1e6 * batch['table_seconds']:.3g} µs a table, {1e9 * batch['sample_seconds']:.3g} ns a "
        f"sample, {1e9 * batch['column_seconds']:.3g} ns a sample and column, "
        f"{1e9 * batch['spilled'][1]:.3g} ns for every byte of the joined embeddings beyond "
        f"{batch['spilled'][0] / 2**20:.3g} MiB.",
    ]
    return "\n".join(lines)


def draw(result: dict[str, Any]) -> None:
    """Predicted over measured, and the distribution of the errors."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "prediction", "svg.fonttype": "none", "font.size": 8})
    figure = Figure(figsize=(8, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = result["steps"]
    for name, marker in zip(list(KINDS)[:4], "os^D", strict=True):
        chosen = [row for row in rows if KINDS[name](row)]
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
    return {"environment": environment(result), "errors": table(result),
            "groups": groups(result), "terms": terms(result)}  # fmt: skip


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks, draw))
