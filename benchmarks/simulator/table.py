"""The table of docs/trust/simulator.md from the newest stored result.

python benchmarks/simulator/table.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Rewrite the marked block."""
    newest = sorted((HERE / "results").glob("*.json"))[-1]
    cases = json.loads(newest.read_text(encoding="utf-8"))["cases"]
    lines = [
        "| rows | α | x | tiers | hit ratio | evicted | simulated, ns | touch, ns | × "
        "| gather, ns | × |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|")
    lines += [
        f"| {c['rows']:,} | {c['alpha']} | {c['x']} | {c['mode']} {c['score'].upper()} | "
        f"{c['hit']} | {c['evicted']:,} | {c['simulated_ns']} | {c['touch_ns']} | "
        f"{c['touch_ratio']} | {c['gather_ns']} | {c['gather_ratio']} |"
        for c in cases
    ]
    block = "\n".join(["<!-- result -->", *lines, "", f"`{newest.name}`.", "<!-- end -->"])
    page = HERE.parent.parent / "docs" / "trust" / "simulator.md"
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"<!-- result -->.*<!-- end -->", lambda _: block, text, flags=re.S)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
