"""Clusters: shorthands, numbering, and what embeddings may use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from tests.milp_planner.inputs.builders import cluster, model, table

LINKS = {"intra_machine": "400GB/s", "inter_machine": "50GB/s"}


def test_number_of_machines_stands_for_a_list() -> None:
    """machines: 2 with its companion fields equals two machines written out."""
    machine = {"ddr": 1_000_000, "ranks": [{"hbm": 100_000}, {"hbm": 100_000}]}
    written_out = {"name": "c", "machines": [machine, machine], "interconnect": LINKS}
    assert Cluster.from_dict(cluster()) == Cluster.from_dict(written_out)


def test_number_of_ranks_stands_for_a_list() -> None:
    """ranks: 2 with hbm inside a machine equals the two ranks written out."""
    short = {
        "name": "c",
        "machines": [{"ddr": "1MB", "ranks": 2, "hbm": "2MB"}],
        "interconnect": LINKS,
    }
    long = {
        **short,
        "machines": [{"ddr": "1MB", "ranks": [{"hbm": "2MB"}, {"hbm": "2MB"}]}],
    }
    assert Cluster.from_dict(short) == Cluster.from_dict(long)


def test_ranks_are_numbered_machine_by_machine() -> None:
    """Machines of different sizes partition the ranks in order."""
    read = Cluster.from_dict(
        {
            "name": "c",
            "machines": [
                {"ddr": 0, "ranks": 1, "hbm": "1MB"},
                {"ddr": 0, "ranks": [{"hbm": "2MB"}, {"hbm": 0}]},
            ],
            "interconnect": LINKS,
        }
    )
    assert read.num_ranks == 3
    assert read.machine_ranks == ((0,), (1, 2))
    assert [rank.hbm_bytes for rank in read.ranks] == [1_000_000, 2_000_000, 0]


def test_usable_hbm_by_hand() -> None:
    """15% of 100,000, 6 × 100 dense, 20 × 8 × batch 4 × 3.5 ids and 60 more leave 82,100 bytes."""
    read = Cluster.from_dict(cluster(reservations={"dense_parameter_bytes": 100, "hbm_bytes": 60}))
    tables = (table(name="a", pooling_factor=2.5), table(name="b"))
    assert read.usable_hbm(Model.from_dict(model(*tables))) == (82_100,) * 4


def test_usable_hbm_rounds_down_and_stops_at_zero() -> None:
    """A fraction of a byte is not usable, and a reservation above the HBM leaves 0."""
    empty = Model.from_dict(model())
    odd = Cluster.from_dict(cluster(hbm=100_001))
    assert odd.usable_hbm(empty) == (85_000,) * 4
    full = Cluster.from_dict(cluster(reservations={"hbm_bytes": "1MB"}))
    assert full.usable_hbm(empty) == (0,) * 4


def test_multiples_can_be_switched_off() -> None:
    """Multiples and percentage of 0 reserve nothing."""
    held = {
        "hbm_percent": 0,
        "min_headroom": 0,
        "dense_parameter_bytes": 100,
        "dense_multiple": 0,
        "kjt_multiple": 0,
    }
    read = Cluster.from_dict(cluster(reservations=held))
    assert read.usable_hbm(Model.from_dict(model(table()))) == (100_000,) * 4


def test_cpu_only() -> None:
    """Ranks without HBM have none to use."""
    read = Cluster.from_dict(cluster(hbm=0))
    assert read.usable_hbm(Model.from_dict(model(table()))) == (0,) * 4


def test_usable_ddr_by_hand() -> None:
    """5% of headroom by default; 12.5% and 1000 bytes of a million leave 874,000."""
    read = Model.from_dict(model(table()))
    assert Cluster.from_dict(cluster()).usable_ddr(read) == (950_000,) * 2
    held = {"ddr_percent": "12.5%", "ddr_bytes": 1000}
    assert Cluster.from_dict(cluster(reservations=held)).usable_ddr(read) == (874_000,) * 2


def test_data_loaders_by_hand() -> None:
    """Two ranks per machine, 3 workers, 2 batches each of 4 samples of 1,000 bytes take 48,000
    bytes of a machine; by default a sample has one id of 8 bytes."""
    for sample, left in ((1000, 950_000 - 48_000), (0, 950_000 - 2 * 3 * 2 * 4 * 8)):
        held = {"loader_workers": 3, "bytes_per_sample": sample}
        read = Model.from_dict({**model(table()), "host_memory": held})
        assert Cluster.from_dict(cluster()).usable_ddr(read) == (left,) * 2


@given(st.integers(1024, 2**50), st.integers(0, 100), st.integers(0, 2**50))
def test_reserving_more_never_leaves_more(hbm: int, percent: int, further: int) -> None:
    """Usable HBM never exceeds the HBM and does not rise with reservations."""
    empty = Model.from_dict(model())
    less, more = (
        Cluster.from_dict(
            cluster(hbm=hbm, reservations={"hbm_percent": percent, "hbm_bytes": size})
        ).usable_hbm(empty)[0]
        for size in (0, further)
    )
    assert 0 <= more <= less <= hbm
    assert less == hbm * (100 - max(percent, 5)) // 100


def test_single_rank_needs_no_interconnect() -> None:
    """A single rank exchanges with nobody."""
    data = cluster(machines=1, ranks_per_machine=1)
    del data["interconnect"]
    read = Cluster.from_dict(data)
    assert list(read.graph().nodes) == [0]


def without(name: str, **fields: Any) -> dict[str, Any]:
    """A cluster's fields except one."""
    return {key: value for key, value in cluster(**fields).items() if key != name}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (without("machines"), r"machines: is missing; allowed: a number"),
        (without("hbm"), r"hbm: is missing; machines: 2 needs it"),
        (without("interconnect"), r"interconnect: is missing; needed with more than one rank"),
        (
            cluster(interconnect={"intra_machine": "1GB/s"}),
            r"interconnect\.inter_machine: is missing; needed with more than one machine",
        ),
        (cluster(machines=0), r"machines: found 0; allowed: a whole number, 1 to 65536"),
        (cluster(machines=True), r"machines: found True; allowed: a whole number, 1 to 65536"),
        (cluster(machines=[]), r"ranks_per_machine: needs a number of machines"),
        (
            {"name": "c", "machines": [{"ddr": 0, "ranks": []}]},
            r"machines\[0\]\.ranks: found 0 entries; allowed: at least 1",
        ),
        (cluster(ranks_per_machine="8"), r"ranks_per_machine: found '8'; allowed: a whole number"),
        (cluster(ranks_per_machine=60_000), r"ranks_per_machine: .*up to 65536 ranks in all"),
        (cluster(hbm=80), r"machines\[0\].*found 80 bytes; .*did you mean 80GiB\?"),
        (cluster(hbm=1), r"machines\[0\].*found 1 bytes"),
        (cluster(ddr="2TBit"), r"machines\[0\]\.ddr: found '2TBit'; allowed: a size"),
        (cluster(reservations={"hbm_percent": 101}), r"reservations\.hbm_percent: .*at most 100"),
        (cluster(profil="h100"), r"profil: unknown field; .*did you mean profile\?"),
    ],
)
def test_mistakes(data: dict[str, Any], sentence: str) -> None:
    """Each mistake gets one sentence."""
    with pytest.raises(BadInput, match=f"^{sentence}"):
        Cluster.from_dict(data)


def test_outside_embeddings_replace_the_assumed_share() -> None:
    """Unstated: 15%. Measured: the peak and the headroom, with 2 · 2 GiB more at four samples than
    at two. In parts: 4 · dense, and context."""
    read = Cluster.from_dict(cluster(hbm="100GiB", reservations={"kjt_multiple": 0}))
    gib = 2**30
    says = [
        (None, 85),
        ({"measured_peak": "20GiB"}, 75),
        (
            {"measured_peak": "20GiB", "measured_batch": 2, "activation_bytes_per_sample": 2 * gib},
            71,
        ),
        ({"parameter_bytes": "2GiB", "activation_bytes_per_sample": 0}, 95 - 8 - 2),
        ({"parameter_bytes": "1GiB", "context": "0GiB", "parameter_multiple": 3}, 92),
    ]
    for said, left in says:
        given = Model.from_dict({**model(table()), "outside_embeddings": said})
        assert read.usable_hbm(given) == (left * gib,) * 4
    here = Cluster.from_dict(
        cluster(hbm="100GiB", reservations={"outside_embeddings": "30GiB", "min_headroom": 10})
    )
    assert here.usable_hbm(given) == (60 * gib,) * 4
