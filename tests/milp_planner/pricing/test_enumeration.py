"""Which options are legal, where, and why others are not."""

from __future__ import annotations

from collections import Counter
from typing import Any

from milp_planner.inputs import Table
from milp_planner.inputs.constraints import TENTHS
from milp_planner.pricing.enumeration import Enumeration, Site, enumeration_of, traits_of

ONE = Site((tuple(range(8)),), False)
FOUR = Site(tuple(tuple(range(8 * m, 8 * m + 8)) for m in range(4)), False)
UNEVEN = Site(((0, 1, 2, 3), (4, 5)), False)


def enumeration(site: Site, fuses: bool = True, **fields: Any) -> Enumeration:
    """The enumeration of a table of 128 columns on the default grid."""
    table = Table.from_dict({"name": "t", "rows": 10_000, "dim": 128, **fields})
    return enumeration_of(traits_of(table, TENTHS, fuses), site)


def kinds(found: Enumeration) -> Counter[str]:
    """Choices by sharding type."""
    return Counter(choice.sharding for choice in found.choices)


def test_torchrec_pooled_on_four_machines() -> None:
    """Dense once; the six others in eleven tiers each, two cuts for the three that cut columns."""
    assert kinds(enumeration(FOUR)) == {
        "data_parallel": 1,
        "table_wise": 11,
        "column_wise": 22,
        "row_wise": 11,
        "table_row_wise": 11,
        "table_column_wise": 22,
        "grid_shard": 22,
    }


def test_one_machine_offers_no_second_name_for_a_placement() -> None:
    """table_row_wise equals row_wise there; it has its own name only if asked for alone."""
    assert set(kinds(enumeration(ONE))) == {
        "data_parallel",
        "table_wise",
        "column_wise",
        "row_wise",
    }
    only = enumeration(ONE, constraints={"sharding_types": ["table_row_wise"]})
    assert set(kinds(only)) == {"table_row_wise"}
    assert any("same placement as row_wise" in text for text in enumeration(ONE).refused)
    assert any("two machines" in text for text in enumeration(ONE).refused)


def test_sequence_tables_take_what_embedding_collection_offers() -> None:
    """Sequence output has no table_row_wise, table_column_wise or grid_shard."""
    found = enumeration(FOUR, output="sequence")
    assert set(kinds(found)) == {"data_parallel", "table_wise", "column_wise", "row_wise"}
    asked = enumeration(FOUR, output="sequence", constraints={"sharding_types": ["grid_shard"]})
    assert not asked.choices
    assert "EmbeddingCollection" in asked.refused[0]


def test_dynamicemb_counts() -> None:
    """Free: 20 options. Honoured: HBM_ONLY twice, once for each of its fusion groups."""
    assert len(enumeration(ONE, fuses=False, kind="dynamicemb").choices) == 20
    found = enumeration(ONE, kind="dynamicemb")
    assert len(found.choices) == 21
    by_mode = Counter((c.mode, c.caching_group) for c in found.choices)
    assert by_mode == {
        ("HBM_ONLY", False): 1,
        ("HBM_ONLY", True): 1,
        ("HYBRID", False): 9,
        ("CACHING", True): 9,
        ("HOST_ONLY", False): 1,
    }


def test_every_allowed_routing_rule_is_offered() -> None:
    """Two dist_types double a dynamicemb enumeration, and names stay unique."""
    found = enumeration(ONE, kind="dynamicemb", dist_types=["roundrobin", "hash_roundrobin"])
    assert len(found.choices) == len(set(found.names)) == 42


def test_asked_for_widths_may_be_uneven() -> None:
    """Two widths with equally many shards have different names."""
    found = enumeration(
        FOUR, constraints={"column_widths": [96, 64], "sharding_types": ["column_wise"]}
    )
    assert {n.split("/")[0] for n in found.names} == {"column_wise:2", "column_wise:2x96"}


def test_uneven_machines_get_a_choice_for_each_size() -> None:
    """A machine's shards depend on its number of ranks."""
    found = [c for c in enumeration(UNEVEN).choices if c.sharding == "table_row_wise"]
    assert {(c.machine_ranks, c.machines) for c in found} == {(4, (0,)), (2, (1,))}
    assert len({c.name for c in found}) == len(found)


def test_cpu_only_clusters_offer_host_only() -> None:
    """Without HBM everything is in DDR, dense tables too."""
    found = enumeration(Site(((0, 1),), True))
    assert {c.mode for c in found.choices} == {"HOST_ONLY"}
    assert "data_parallel" in kinds(found)


def test_constraints_limit_modes_ratios_and_types() -> None:
    """Only allowed options are offered."""
    found = enumeration(
        FOUR,
        constraints={
            "modes": ["CACHING"], "cache_ratios": ["1/3"], "sharding_types": ["row_wise"],
        },
    )  # fmt: skip
    assert found.names == ("row_wise/CACHING/1/3",)


def test_allowed_ranks_restrict_places() -> None:
    """any_rank shards use only these; row_wise needs all ranks; machines must lie inside."""
    found = enumeration(FOUR, constraints={"ranks": [*range(8), 9]})
    by_type = {c.sharding: c for c in found.choices}
    assert by_type["table_wise"].ranks == (*range(8), 9)
    assert by_type["table_row_wise"].machines == (0,)
    assert by_type["table_column_wise"].machines == (0,)
    assert not {"row_wise", "data_parallel", "grid_shard"} & set(by_type)


def test_pins_fix_what_they_name() -> None:
    """With mode, ratio and ranks pinned, one option remains, whose shards have their ranks."""
    pin = {"sharding_type": "column_wise", "mode": "HBM_ONLY", "ranks": [3, 3]}
    (choice,) = enumeration(FOUR, constraints={"pin": pin}).choices
    assert (choice.name, choice.pinned) == ("column_wise:2/HBM_ONLY", (3, 3))
    pin = {"mode": "CACHING", "cache_ratio": "0.3"}
    found = enumeration(FOUR, constraints={"pin": pin})
    assert {(c.mode, str(c.ratio)) for c in found.choices} == {("CACHING", "3/10")}


def test_pinned_ranks_of_table_column_wise_share_a_machine() -> None:
    """Ranks of two machines cannot hold a table_column_wise table."""
    pin = {"sharding_type": "table_column_wise", "mode": "HBM_ONLY", "ranks": [0, 8]}
    assert not enumeration(FOUR, constraints={"pin": pin}).choices
    pin["ranks"] = [0, 7]
    assert len(enumeration(FOUR, constraints={"pin": pin}).choices) == 1


def test_a_pinned_machine_must_be_named_whole() -> None:
    """table_row_wise on ranks 8…15 is machine 1; with seven of them there is no option."""
    pin = {"sharding_type": "table_row_wise", "mode": "HBM_ONLY", "ranks": list(range(8, 16))}
    (choice,) = enumeration(FOUR, constraints={"pin": pin}).choices
    assert choice.machines == (1,)
    pin["ranks"] = list(range(8, 15))
    assert not enumeration(FOUR, constraints={"pin": pin}).choices
