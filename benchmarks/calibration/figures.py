"""Figure and tables of the newest calibration: ``python benchmarks/calibration/figures.py``.

Writes the marked blocks of docs/trust/calibration.md and draws docs/figures/calibration.svg; with
``--check`` the exit code tells whether the page is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "trust" / "calibration.md"
MULTIPLES = {"backward_multiple": "lookup training", "dense_update_multiple": "dense update"}
"""And the probes that measure them."""


def environment(raw: dict[str, Any]) -> str:
    """Where and when, in a sentence, and whether the machine was busy."""
    where = raw["machine"]
    load = where["load_average"]
    busy = (
        f" **The machine was shared with other work (load average {load:.0f} on {where['cores']} "
        "cores).**" if load is not None and load > where["cores"] + 1 else ""
    )  # fmt: skip
    took = f"; {raw['seconds']:.0f} s in all" if "seconds" in raw else "; wall time not stored"
    return (
        f"Measured {where['date']} on {where['processor']} with {where['threads']} of "
        f"{where['cores']} cores, {where['last_level_cache'] / 2**20:.0f} MiB last-level cache, "
        f"torch {where['torch']}{took}.{busy}"
    )


def tiers(raw: dict[str, Any]) -> str:
    """The profile's numbers with their spread."""
    profile, spread = raw["profile"], raw["profile"]["spread"]
    kernel = profile["kernel"]
    rate = {name: int(profile[name][:-3]) / 1e9 for name in ("hbm", "ddr", "host_link")}
    rows = [
        ("`hbm`: rows in the cache", f"{rate['hbm']:.3g} GB/s", "hbm"),
        ("`ddr`, `host_link`: rows in DRAM", f"{rate['ddr']:.3g} GB/s", "ddr"),
        ("`launch_seconds`", f"{1e6 * kernel['launch_seconds']:.3g} µs", "launch_seconds"),
        *(
            (f"x_eff `{mode}` at hit ratio {x:g}", f"{x_eff:.3f}", mode)
            for mode in ("caching", "hybrid")
            for x, x_eff in profile[mode]["points"]
            if x > 0
        ),
    ]
    lines = ["| number | measured | spread |", "|---|---|---|"]
    lines += [f"| {what} | {value} | ±{spread.get(name, 0):.1%} |" for what, value, name in rows]
    probes = " ".join(sample["name"] for sample in raw["samples"])
    lines += [
        f"| `{name}` | {kernel[name]:.3g} | |"
        for name, probe in MULTIPLES.items()
        if probe in probes
    ]
    for limit, penalty in kernel["narrow_penalties"]:
        lines.append(f"| `narrow_penalties` below {limit} columns | {penalty:.3g} | |")
    return "\n".join(lines)


def draw(raw: dict[str, Any]) -> None:
    """Bandwidth over the hit ratio."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "calibration", "svg.fonttype": "none", "font.size": 8})
    figure = Figure(figsize=(5, 3), layout="constrained")
    _curves(figure.subplots(), raw["profile"])
    figure.savefig(ROOT / "docs" / "figures" / "calibration.svg", metadata={"Date": None})


def _curves(axis: Any, profile: dict[str, Any]) -> None:
    hbm, link = (int(profile[name][:-3]) / 1e9 for name in ("hbm", "host_link"))
    for mode, marker in (("caching", "o"), ("hybrid", "s")):
        points = np.array(profile[mode]["points"])
        rate = points[:, 1] * hbm + (1 - points[:, 1]) * link
        bars = axis.plot(100 * points[:, 0], rate, f"{marker}-", label=mode.upper())
        width = profile["spread"].get(mode, 0) * points[:, 1] * (hbm - link)
        axis.fill_between(100 * points[:, 0], rate - width, rate + width, alpha=0.2,
                          color=bars[0].get_color())  # fmt: skip
    share = np.linspace(0, 1, 50)
    axis.plot(100 * share, 1 / (share / hbm + (1 - share) / link), ":", color="black",
              label="times of the tiers added")  # fmt: skip
    axis.set(xlabel="lookups in the near tier, %", ylabel="GB/s", ylim=(0, None), title="tiers")
    axis.legend(frameon=False, fontsize=7)


def blocks(raw: dict[str, Any]) -> dict[str, str]:
    """Text of every block of the page, by name."""
    return {"environment": environment(raw), "tiers": tiers(raw)}


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks, draw, pattern="*.raw.json"))
