"""NeuroShard's greedy algorithms are replayed as logged; prices are fitted as the page says."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.neuroshard import fit, model, page
from benchmarks.neuroshard.greedy import MEASURES, place
from benchmarks.neuroshard.run import CLUSTER, changed, cost_of
from milp_planner.plans.compile import compile_for
from scenarios.catalog import find_model

GIB = 2**30


@pytest.mark.parametrize("measure", ["dim", "lookup"])
def test_greedy_plans_are_those_of_the_logs(shared_data: Path, measure: str) -> None:
    """All 100 tasks on 4 devices of 8 GiB, table by table."""
    log = shared_data / "neuroshard" / "logs" / f"{measure}_greedy_4x8GiB.txt"
    plans = [json.loads(text) for text in re.findall(r"shards: (\[.*\])", log.read_text())]
    assert len(plans) == 100
    for number, devices in enumerate(plans):
        theirs = {table: device for device, tables in enumerate(devices) for table in tables}
        ours = place(find_model(f"neuroshard:{number}"), measure, 4, 8 * GIB)
        assert ours == [theirs[table] for table in range(len(theirs))]


def test_greedy_algorithms_fit_93_to_97_tasks() -> None:
    """On 4 devices of 4 GiB, as the data's description says of all four."""
    tasks = [find_model(f"neuroshard:{number}") for number in range(100)]
    found = {name: sum(place(t, name, 4, 4 * GIB) is not None for t in tasks) for name in MEASURES}
    assert found == {"size": 97, "dim": 97, "lookup": 93, "size × lookup": 94}


def test_the_cost_of_a_plan_is_that_of_its_fullest_devices() -> None:
    """All tables on one device cost the sum of their prices, in every phase."""
    task = changed(find_model("neuroshard:3"), sharding_types=("table_wise",), column_widths=None)
    small = task.model_copy(update={"tables": task.tables[:3]})
    instance = compile_for(small, CLUSTER, "step_time").instance
    assert cost_of(instance, [1, 1, 1]) == int(instance.shard_cost.sum())


def test_the_shipped_profile_is_the_fit(shared_data: Path) -> None:
    """Its terms and the stored errors are what the measured sets give."""
    terms, seconds = fit.measured(shared_data / "neuroshard")
    assert terms.shape == (5019, 6)
    stored = json.loads(page.FIT.read_text())["errors"]["fused lookups, both passes"]
    again = fit.errors(fit.held_out(terms, seconds), seconds)
    assert again == pytest.approx(stored, rel=1e-3)
    text = fit.profile(fit.fitted(terms, seconds), again["median_error"])
    numbers = [
        re.findall(r": ([0-9.e+-]+)$", each, re.M) for each in (text, fit.PROFILE.read_text())
    ]
    assert np.allclose(*(np.array(each, dtype=float) for each in numbers), rtol=1e-3)


def test_popularity_is_that_of_the_batch() -> None:
    """1,000 rows looked up 8 times a batch on average, and 9,000 never: the counts of such a batch
    give exactly these classes back."""
    chances = model._chances()[:, list(model.LAMBDAS).index(8.0)]
    seen = 1000 * chances
    table = {"row": 10_000, "pooling_factor": float(seen @ model.mean_counts()) / model.BATCH}
    table |= {f"bin_{k}": share for k, share in enumerate((seen / seen.sum()).tolist())}
    found = model.popularity(table)
    (never, _), (often, ids) = found
    assert (never, often, ids) == pytest.approx((0.9, 0.1, 1), rel=1e-3)
