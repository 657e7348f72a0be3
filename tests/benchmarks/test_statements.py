"""No two pages contradict each other about a plan, and a test of that can fail."""

import json
from math import inf
from pathlib import Path

import pytest

from benchmarks.statements import (
    Statement,
    contradictions,
    gap_of,
    pages,
    stale,
    statements,
    time_of,
)

ROOT = Path(__file__).resolve().parents[2]
KNOWN = json.loads((ROOT / "benchmarks" / "figures.json").read_text("utf-8"))
RESULTS, TIME = "docs/results.md", "docs/trust/time.md"
LISTED = """| model × cluster | plan, ms | certified gap |
|---|---|---|
| m × 8xh100 * | {time} | {gap} |
"""
PLANNED = """| plan | step time | gap |
|---|---|---|
| `m@8xh100` | {time} | {gap} |
"""
DATES = {f"{RESULTS}#catalogue": {"date": "2026-02-01", "commit": "2222222"},
         f"{TIME}#sensitivity": {"date": "2026-01-01", "commit": "1111111"}}  # fmt: skip


def both(time: str, gap: str, words: str = "") -> dict[str, str]:
    """Two pages: the catalogue says 2 ms, at most 10% off; the other what is given."""
    return {
        RESULTS: LISTED.format(time="2", gap="10.00%"),
        TIME: PLANNED.format(time=time, gap=gap) + words,
    }


def test_pages_agree() -> None:
    """Every two pages that state a plan of the same model and cluster can both be right, or the
    older one names the commit whose prices it shows."""
    assert contradictions(pages(), KNOWN) == []


def test_prices_named_are_those_measured() -> None:
    """A page that names the prices of a commit was last measured there."""
    assert stale(pages(), KNOWN) == []


def test_what_pages_state_is_found() -> None:
    """Five pages at least state something, and enough pairs of measurements are compared."""
    found = statements(pages())
    assert len({s.page for s in found}) >= 5
    by_question: dict[tuple[str, str], set[str]] = {}
    for s in found:
        by_question.setdefault((s.model, s.cluster), set()).add(s.measured)
    assert sum(len(each) > 1 for each in by_question.values()) >= 10


@pytest.mark.parametrize(
    ("time", "gap", "wrong"),
    [
        ("1.9 ms", "0", False),  # the optimum may lie there
        ("2.5 ms", "30%", False),  # a worse plan with a wide gap
        ("1.7 ms", "5%", True),  # a plan below the catalogue's bound
        ("2.5 ms", "10%", True),  # a bound above the catalogue's plan
        ("1700 µs", "5%", True),
        ("none (certified infeasible)", "", True),
    ],
)
def test_intervals_that_do_not_meet_are_reported(time: str, gap: str, wrong: bool) -> None:
    """A plan below another page's bound is, plans of different quality are not."""
    found = contradictions(both(time, gap), DATES)
    assert bool(found) == wrong
    assert all("time.md does not say: at the prices of 1111111" in each for each in found)


def test_the_older_page_may_say_so() -> None:
    """It names the commit at which it was measured; another commit does not count."""
    assert contradictions(both("1.7 ms", "0", "All at the prices of `1111111`."), DATES) == []
    other = both("1.7 ms", "0", "All at the prices of 2222222.")
    assert len(contradictions(other, DATES)) == len(stale(other, DATES)) == 1


def test_of_two_pages_of_one_day_either_may_say_so() -> None:
    """Their dates do not tell which is older."""
    dates = {page: {**entry, "date": "2026-01-01"} for page, entry in DATES.items()}
    assert len(contradictions(both("1.7 ms", "0"), dates)) == 1
    assert contradictions(both("1.7 ms", "0", "At the prices of 1111111."), dates) == []
    pages = both("1.7 ms", "0")
    pages[RESULTS] += "At the prices of 2222222."
    assert contradictions(pages, dates) == []


def test_cells_are_read() -> None:
    """Marks of proof, units and the share that is a gap."""
    assert time_of("**0.00141**", "ms") == 0.00141 and time_of("17.19 s") == 17190
    assert time_of("none (certified infeasible)", "ms") == inf
    assert time_of("no plan found") is None and time_of("12") is None
    assert gap_of("0.251† (0.072%), 75%") == pytest.approx(0.00072)
    assert gap_of("**0.5475**, 72%") == gap_of("0") == 0 and gap_of("37.15 ms (gap 0.8%)") == 0.008


def test_what_is_beside_a_plan_is_not_read() -> None:
    """A model with another objective than the step time is not."""
    page = """| model × cluster | plan, ms | certified gap |
|---|---|---|
| m × 8xh100 * | 2 | 50.00% |
| m × c × busiest_rank | 9 | 0 |
"""
    (found,) = statements({RESULTS: page})
    assert (found.model, found.cluster, found.found) == ("m", "8xh100", 2)
    assert found.least == pytest.approx(1, rel=0.01)


def test_a_peer_below_our_bound_is_reported() -> None:
    """On an instance of TorchRec's, nobody's plan may cost less than our bound, on any page."""
    ours = """| instance | CP-SAT ms | ours ms: best | gap: best |
|---|---|---|---|
| i | {peer} | 10 | 1% |
"""
    name = RESULTS
    dates = {f"{name}#torchrec": {"date": "2026-01-01", "commit": "1111111"}}
    assert contradictions({name: ours.format(peer="9.95")}, dates) == []
    (wrong,) = contradictions({name: ours.format(peer="9.7")}, dates)
    assert "i@as TorchRec estimates: 0 to 9.7 ms" in wrong


def test_matrices_and_boxes_are_read() -> None:
    """A suite's column is a cluster, and a verdict in a console is a statement, too."""
    page = """| model | 1xa10 | 8xh100 | 8xh200 | 8xb200 | 8xmi350x |
| --- | --- | --- | --- | --- | --- |
| m | | 2 (50%), 1% | | | |

╭─ m@1xa10 ──╮
│ step_time 4 ms   gap 25%   bound 3 ms │
╰────╯
"""
    name = "docs/suites.md"
    first, second = statements({name: page})
    assert first == Statement(name, name, "m", "8xh100", pytest.approx(1, rel=0.01), 2)
    assert second == Statement(name, name, "m", "1xa10", pytest.approx(3, rel=0.01), 4)
