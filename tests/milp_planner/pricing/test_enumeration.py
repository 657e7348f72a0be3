"""Which options are legal, where, and why others are not.

Names of options and kernels.

Legal widths of column shards.

Tables and options as arrays.
"""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from milp_planner.inputs import Table, Workload
from milp_planner.pricing.cuts import column_cuts, is_even
from milp_planner.pricing.enumeration import Enumeration, Site, enumeration_of, traits_of
from milp_planner.pricing.job import option_columns, table_columns
from milp_planner.pricing.options import BY_COLUMN, Choice, ratio_text
from tests.milp_planner.pricing.build import model

ONE = Site((tuple(range(8)),), False)
FOUR = Site(tuple(tuple(range(8 * m, 8 * m + 8)) for m in range(4)), False)
UNEVEN = Site(((0, 1, 2, 3), (4, 5)), False)
WITHOUT_MACHINES = {"data_parallel", "table_wise", "column_wise", "row_wise"}


def enumeration(site: Site, fuses: bool = True, **fields: Any) -> Enumeration:
    """The enumeration of a table of 128 columns on the default grid."""
    table = Table.from_dict({"name": "t", "rows": 10_000, "dim": 128, **fields})
    work = Workload(batch_per_rank=1, fusion="honoured" if fuses else "free")
    return enumeration_of(traits_of(table, work), site)


def kinds(found: Enumeration) -> Counter[str]:
    """Choices by sharding type."""
    return Counter(choice.sharding for choice in found.choices)


def test_torchrec_pooled_on_four_machines() -> None:
    """Dense once; the six others in eleven tiers each, two cuts for the three that cut columns."""
    cut = dict.fromkeys(BY_COLUMN, 22)
    once = dict.fromkeys(("table_wise", "row_wise", "table_row_wise"), 11)
    assert kinds(enumeration(FOUR)) == {"data_parallel": 1, **once, **cut}


def test_one_machine_offers_no_second_name_for_a_placement() -> None:
    """table_row_wise equals row_wise there; it has its own name only if asked for alone."""
    assert set(kinds(enumeration(ONE))) == WITHOUT_MACHINES
    only = enumeration(ONE, constraints={"sharding_types": ["table_row_wise"]})
    assert set(kinds(only)) == {"table_row_wise"}
    assert any("same placement as row_wise" in text for text in enumeration(ONE).refused)
    assert any("two machines" in text for text in enumeration(ONE).refused)


def test_sequence_tables_take_what_embedding_collection_offers() -> None:
    """Sequence output has no table_row_wise, table_column_wise or grid_shard."""
    found = enumeration(FOUR, output="sequence")
    assert set(kinds(found)) == WITHOUT_MACHINES
    asked = enumeration(FOUR, output="sequence", constraints={"sharding_types": ["grid_shard"]})
    assert not asked.choices
    assert "EmbeddingCollection" in asked.refused[0]


def test_dynamicemb_counts() -> None:
    """Free: 20 options. Honoured: HBM_ONLY twice, once for each of its fusion groups."""
    assert len(enumeration(ONE, fuses=False, kind="dynamicemb").choices) == 20
    found = enumeration(ONE, kind="dynamicemb")
    assert len(found.choices) == 21
    once = Counter([("HBM_ONLY", False), ("HBM_ONLY", True), ("HOST_ONLY", False)])
    tiered = Counter({("HYBRID", False): 9, ("CACHING", True): 9})
    assert Counter((c.mode, c.caching_group) for c in found.choices) == once + tiered


def test_every_allowed_routing_rule_is_offered() -> None:
    """Two dist_types double a dynamicemb enumeration, and names stay unique."""
    found = enumeration(ONE, kind="dynamicemb", dist_types=["roundrobin", "hash_roundrobin"])
    assert len(found.choices) == len(set(found.names)) == 42


def test_asked_for_widths_may_be_uneven() -> None:
    """Two widths with equally many shards have different names."""
    limits = {"column_widths": [96, 64], "sharding_types": ["column_wise"]}
    found = enumeration(FOUR, constraints=limits)
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
    limits = {"modes": ["CACHING"], "cache_ratios": ["1/3"], "sharding_types": ["row_wise"]}
    found = enumeration(FOUR, constraints=limits)
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


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(Fraction(3, 10), "0.3"), (Fraction(7, 20), "0.35"), (Fraction(1, 3), "1/3")],
)
def test_ratios_are_decimals_where_they_can_be(ratio: Fraction, text: str) -> None:
    """Hundredths as decimals, others as fractions, so that names are exact."""
    assert ratio_text(ratio) == text
    assert Fraction(text) == ratio


def test_names_tell_choices_apart() -> None:
    """Sharding type with its shards, mode, ratio, routing, and HBM_ONLY's fusion group."""
    half = Fraction(1, 2)
    assert Choice("column_wise", "CACHING", half, 32, 2).name == "column_wise:2/CACHING/0.5"
    assert Choice("column_wise", "HBM_ONLY", half, 96, 2, False).name == "column_wise:2x96/HBM_ONLY"
    assert Choice("table_wise", "HOST_ONLY", Fraction(0), 64).name == "table_wise/HOST_ONLY"
    row_wise = Choice("row_wise", "CACHING", half, 64, dist_type="roundrobin", caching_group=True)
    assert row_wise.name == "row_wise/CACHING/0.5/roundrobin"
    both = [
        Choice("row_wise", "HBM_ONLY", Fraction(1), 64, 1, True, "roundrobin", group).name
        for group in (False, True)
    ]
    assert both == ["row_wise/HBM_ONLY/roundrobin", "row_wise/HBM_ONLY/roundrobin/beside_caching"]


@pytest.mark.parametrize(
    ("dim", "allowed", "cuts"),
    [
        (512, None, [(256, 2), (128, 4), (64, 8), (32, 16)]),
        (128, None, [(64, 2), (32, 4)]),
        (96, None, [(48, 2), (32, 3)]),
        (100, None, [(52, 2)]),
        (63, None, []),
        (128, (96, 8, 30, 128), [(96, 2), (8, 16)]),
    ],
)
def test_column_cuts(dim: int, allowed: tuple[int, ...], cuts: list[tuple[int, int]]) -> None:
    """Even cuts into multiples of four columns, of 32 or more; of widths that are asked for, those
    that are multiples of four and not the whole table, widest first."""
    assert list(column_cuts(dim, allowed)) == cuts


def test_even_means_no_narrower_width_gives_as_many_shards() -> None:
    """100 columns in two shards: 52 and 48, not 96 and 4."""
    assert is_even(100, 52, 2)
    assert not is_even(100, 96, 2)


def test_table_columns_hold_what_the_model_says() -> None:
    """Rows, element sizes, state and flags, one per table."""
    found = table_columns(
        model({"dtype": "fp16", "optimizer": "adam"}, {"kind": "dynamicemb", "weighted": True})
    )
    assert found.rows.tolist() == [1000, 1000]
    assert found.element.tolist() == [2, 4]
    assert found.state_over.tolist() == [2, 1]
    assert found.state_under.tolist() == [1, 64]
    assert found.weighted.tolist() == [False, True]


def test_inference_drops_the_state() -> None:
    """No optimizer state is kept."""
    found = table_columns(model({"optimizer": "adam"}, mode="inference"))
    assert found.state_over.tolist() == [0]
    assert found.runtime_row.tolist() == [256]


def test_choices_become_codes_and_masks() -> None:
    """Codes give back their names; masks tell rows over all ranks from a machine's."""
    choices = [
        Choice("row_wise", "CACHING", Fraction(3, 10), 64),
        Choice("table_row_wise", "HOST_ONLY", Fraction(0), 64, machine_ranks=4),
        Choice("column_wise", "HBM_ONLY", Fraction(1), 32, 2),
    ]
    columns = option_columns(choices, 16, range(3))
    assert columns.group_ranks.tolist() == [16, 4, 1]
    assert columns.is_sharding("row_wise", "column_wise").tolist() == [True, False, True]
    assert columns.is_mode("HOST_ONLY").tolist() == [False, True, False]
    assert (columns.over[0], columns.under[0]) == (3, 10)
    assert columns.at(np.array([2, 2])).table.tolist() == [2, 2]
