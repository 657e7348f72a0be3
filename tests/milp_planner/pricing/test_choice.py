"""Names of options and kernels."""

from __future__ import annotations

from fractions import Fraction

import pytest

from milp_planner.pricing.options import Choice, ratio_text
from milp_planner.pricing.runtimes.registry import kernel_of


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


def test_kernels() -> None:
    """TorchRec's kernel names; without HBM no UVM; dynamicemb has its own kernel."""
    assert kernel_of("torchrec", "data_parallel", "HBM_ONLY") == "dense"
    found = [kernel_of("torchrec", "row_wise", m) for m in ("HBM_ONLY", "CACHING", "HOST_ONLY")]
    assert found == ["fused", "fused_uvm_caching", "fused_uvm"]
    assert kernel_of("torchrec", "row_wise", "HOST_ONLY", cpu_only=True) == "fused"
    assert kernel_of("dynamicemb", "row_wise", "HYBRID") == "customized_kernel"
