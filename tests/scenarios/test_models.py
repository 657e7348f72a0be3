"""The shipped models and clusters, compared with the lists and figures they come from.

Options, bytes and prices of every shipped suite, and of random models of every runtime, as they
were.
"""

import csv
import itertools
import json
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs.interconnect import all_to_all_bandwidth
from milp_planner.integrations import replay
from milp_planner.pricing import price
from milp_planner.pricing.outside import capacities
from scenarios.catalog import Entry, clusters, find_cluster, find_model, models
from tests.scenarios.fingerprints import STORED, drawn_inputs, fingerprint, fingerprints

LISTS = {
    "criteo-kaggle": "criteo_kaggle_26",
    "criteo-terabyte": "criteo_terabyte_mod40M_26",
    "dlrmv4-yambda5b": "dlrmv4_yambda5b_11",
    "kuairand-27k": "recsys_examples_kuairand27k_8",
    "mlperf-dlrm-dcnv2": "mlperf_dlrm_dcnv2_26",
}
GIB = 2**30
COUNTED = {
    "criteo-terabyte-full": "criteo_1tb_unthresholded",
    "distemb-colossal": "distemb_colossal",
    "distemb-jumbo": "distemb_jumbo",
    "distemb-large": "distemb_large",
    "distemb-medium": "distemb_medium",
    "distemb-small": "distemb_small",
    "distemb-tiny": "distemb_tiny",
    "dlrmv3-kuairand": "dlrmv3_kuairand",
    "dlrmv3-movielens-13b": "dlrmv3_movielens_13b",
    "dlrmv3-streaming-100b": "dlrmv3_streaming_100b",
    "embark-t180": "embark_180table_70B_hotness80",
    "embark-t200": "embark_200table_100B_hotness20",
    "embark-t510": "embark_510table_110B_hotness5",
    "embark-t7": "embark_7table_470B_hotness20",
    "torchrec-gb200": "torchrec_gb200_benchmark",
}
"""Lists with counts, in which a line stands for many equal tables."""


@pytest.mark.parametrize("name", LISTS)
def test_tables_are_the_published_ones(name: str, shared_data: Path) -> None:
    """Names, rows, widths and pooling factors equal the published list, in its order."""
    published = json.loads((shared_data / "tables" / f"{LISTS[name]}.json").read_text())["tables"]
    read = find_model(name).tables
    assert [table.name for table in read] == [each["name"] for each in published]
    for table, each in zip(read, published, strict=True):
        assert table.rows == each["rows"]
        assert table.dim == each.get("dim", table.dim)
        assert table.lookups_per_sample == each.get("pooling_factor", table.lookups_per_sample)
        assert (table.kind == "dynamicemb") == each.get("dynamicemb", False)


@pytest.mark.parametrize("name", COUNTED)
def test_tables_are_those_of_the_lists(name: str, shared_data: Path) -> None:
    """Names, rows, widths, ids and inputs equal the published list, line by line; ids that are not
    published are the model's own."""
    lines = (shared_data / "table-lists" / f"{COUNTED[name]}.csv").read_text().splitlines()
    tables = iter(find_model(name).tables)
    for line in csv.DictReader(lines):
        many = list(itertools.islice(tables, int(line["count"])))
        names = line["name"].split("-")
        assert (many[0].name, many[-1].name) == (names[0], names[-1])
        for table in many:
            assert (table.rows, table.dim) == (int(line["rows"]), int(line["dim"]))
            if line["pooling"]:
                assert table.lookups_per_sample == float(line["pooling"])
                assert table.num_features == len(line["inputs"].split("+"))
    assert next(tables, None) is None


def test_production_model_is_that_of_the_printout(shared_data: Path) -> None:
    """Its 1,935 tables equal inputs that another script made from the same printout."""
    file = shared_data / "torchrec-production" / "tables.csv"
    published = {line["name"]: line for line in csv.DictReader(file.read_text().splitlines())}
    tables = find_model("torchrec-production").tables
    assert len(tables) == len(published) == 1935
    for table in tables:
        line = published[table.name]
        assert (table.rows, table.dim) == (int(line["rows"]), int(line["dim"]))
        ids = float(line["pooling_factor"] or line["sequence_length"])
        assert table.output == line["output"]
        ids *= int(line["num_features"])
        assert table.lookups_per_sample == pytest.approx(ids, rel=1e-3, abs=1e-3)


def test_dlrmv4_by_the_published_totals() -> None:
    """293,051,712 rows, 558.95 GiB of weights, about 2.69 million ids of album_id per rank."""
    model = find_model("dlrmv4-yambda5b")
    assert sum(table.rows for table in model.tables) == 293_051_712
    assert model.weight_bytes / GIB == pytest.approx(558.95, abs=0.01)
    album = model.table("album_id")
    ids = album.lookups_per_sample * model.workload.batch_per_rank
    assert ids == pytest.approx(2.69e6, rel=1e-3)
    assert album.access.measured_skew.max_over_mean == 2.8
    assert model.workload.exchange_dtype == "fp16"


def test_dlrmv4_has_the_widths_that_its_trainer_makes() -> None:
    """Every table's column shards are those of the planner that the trainer calls, and no other."""
    trainer = replay.get("dlrmv4")
    for table in find_model("dlrmv4-yambda5b").tables:
        assert table.constraints.column_widths == (trainer.grid(table)["column_widths"],)


@pytest.mark.parametrize("entry", models(), ids=lambda entry: entry.name)
def test_models_say_where_they_come_from(entry: Entry) -> None:
    """Every model has a source, and says if its skew is assumed or unknown."""
    model = find_model(entry.name)
    assert len(model.source) > 40
    text = model.description.lower()
    assert "assumed" in text or "unknown" in text


@pytest.mark.parametrize("entry", clusters(), ids=lambda entry: entry.name)
def test_clusters_match_their_names(entry: Entry) -> None:
    """Machines, ranks and profile are those of the name, and the figures have a source."""
    cluster = find_cluster(entry.name)
    assert len(cluster.source) > 40
    if entry.name.startswith("mixed-"):  # an example of unequal machines that models no product
        return
    if entry.name.endswith("-nvl72"):  # named by whole domains: 18 machines of 4 ranks each
        domains = int(entry.name.partition("x")[0]) if "x" in entry.name else 1
        assert [len(machine.ranks) for machine in cluster.machines] == [4] * 18 * domains
        return
    first, second, *_ = cluster.name.split("x")
    machines, ranks = (int(first), int(second)) if second.isdigit() else (1, int(first))
    assert [len(machine.ranks) for machine in cluster.machines] == [ranks] * machines
    assert cluster.name.removesuffix("-tight").removesuffix("-ssd").endswith(f"x{cluster.profile}")


@pytest.mark.parametrize(
    ("name", "hbm_gib", "ddr_bytes"),
    [
        ("1xa10", 22.49, 440 * GIB),
        ("8xa100", 74.51, 2 * 10**12),
        ("8xh100", 79.65, 2 * 10**12),
        ("8xh200", 140.40, 2 * 10**12),
        ("8xb200", 179.06, 2 * 10**12),
        ("8xb200-tight", 179.06, 2**40),
        ("8xmi350x", 288.0, 3 * 10**12),
    ],
)
def test_memory_figures(name: str, hbm_gib: float, ddr_bytes: int) -> None:
    """HBM per rank and DDR per machine equal the figures of the source."""
    cluster = find_cluster(name)
    assert cluster.ranks[0].hbm_bytes / GIB == pytest.approx(hbm_gib, abs=0.005)
    assert cluster.machines[0].ddr_bytes == ddr_bytes


def test_exchange_is_slower_between_machines() -> None:
    """450 GB/s inside and 50 GB/s outside: 514 GB/s on one machine, 66.7 GB/s on four."""
    inside, across = find_cluster("8xh100"), find_cluster("4x8xh100")
    assert all_to_all_bandwidth(inside.graph(), range(8)) == pytest.approx(450e9 * 8 / 7)
    assert all_to_all_bandwidth(across.graph(), range(32)) == pytest.approx(400e9 / 6)


def test_tight_cluster_is_tight() -> None:
    """DLRMv4 does not fit the tight cluster's 90 GiB of HBM, but fits HBM and DDR together."""
    model, cluster = find_model("dlrmv4-yambda5b"), find_cluster("8xb200-tight")
    hbm = sum(min(capacities(model, cluster).values()))
    assert cluster.usable_hbm(model)[0] / GIB == pytest.approx(90, abs=0.2)
    buffers = 3 * 2_690_048 * 512 * 4 * cluster.num_ranks
    assert model.weight_bytes + buffers > hbm
    assert model.weight_bytes < hbm + sum(cluster.usable_ddr(model))


AGAIN = "changed on purpose? python -m tests.scenarios.fingerprints"


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_changed_its_bytes_or_price(step: int) -> None:
    """Every fifth input, and every one, has the options, bytes and prices that are stored."""
    stored, found = json.loads(STORED.read_text(encoding="utf-8")), fingerprints(step)
    assert [name for name in found if stored.get(name) != found[name]] == [], AGAIN
    assert step > 1 or stored.keys() == found.keys(), AGAIN


def test_one_byte_more_is_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte more per slot of a cache changes the bytes' hash alone."""
    inputs = {name: (model, cluster) for name, model, cluster in drawn_inputs(40)}
    before = {name: fingerprint(*each) for name, each in inputs.items()}
    monkeypatch.setattr("milp_planner.pricing.storage.CACHE_SLOT_BYTES", 17)
    after = {name: fingerprint(*each) for name, each in inputs.items()}
    changed = [name for name in inputs if before[name] != after[name]]
    assert changed
    for name in changed:
        options, sizes, prices = before[name].split()
        assert after[name].split()[::2] == [options, prices]
        assert after[name].split()[1] != sizes


@pytest.mark.slow
def test_the_random_inputs_are_of_every_runtime() -> None:
    """Most are priced, and every mode, library, storage model and cost model is among them."""
    modes, kinds, storages, costs, priced = set(), set(), set(), set(), 0
    for _, model, cluster in drawn_inputs():
        try:
            options = price(model, cluster)
        except BadInput:
            continue  # the sentence has a fingerprint, too
        priced += 1
        modes |= {choice.mode for choice in options.choices}
        kinds |= {table.kind for table in model.tables}
        storages.add(model.workload.storage_model)
        costs.add(model.workload.cost_model)
    assert modes == {"HBM_ONLY", "HYBRID", "CACHING", "HOST_ONLY", "SSD"}
    assert (len(kinds), len(storages), len(costs)) == (2, 2, 3)
    assert priced > 150
