"""Sources of prices: declared by operator, weakened by type, weakest where several numbers meet."""

import pytest
from pydantic import ValidationError

from milp_planner.pricing.profile import load_profile, profile_names
from milp_planner.pricing.sources import (
    ASSUMED,
    DATA_SHEET,
    OPERATORS,
    Source,
    exchange_operators,
    lookup_operator,
    weakest,
)

SEEN = Source(how="measured", hardware="NVIDIA H100", dtypes=("fp32",))


def test_another_type_is_interpolated() -> None:
    """Only the element types that were measured are; a source without types covers all."""
    assert SEEN.for_dtype("fp32").words == "measured on NVIDIA H100"
    assert SEEN.for_dtype("fp16").words == "interpolated on NVIDIA H100"
    assert SEEN.model_copy(update={"dtypes": ()}).for_dtype("int8").how == "measured"
    assert DATA_SHEET.for_dtype("fp16") == DATA_SHEET


@pytest.mark.parametrize("given", [{"how": "measured"}, {"how": "assumed", "hardware": "H100"}])
def test_hardware_is_named_exactly_where_it_was_measured(given: dict[str, str]) -> None:
    """A measurement without hardware, and hardware without one, are refused."""
    with pytest.raises(ValidationError, match="hardware exactly where something was measured"):
        Source.model_validate(given)


def test_the_weakest_number_decides() -> None:
    """Assumed is weaker than a data sheet, that than interpolated, that than measured."""
    between = Source(how="interpolated", hardware="NVIDIA H100")
    assert weakest([SEEN, between]) == between
    assert weakest([between, DATA_SHEET, SEEN]) == DATA_SHEET
    assert weakest([DATA_SHEET, ASSUMED]) == ASSUMED


def test_operators_of_shards() -> None:
    """By library, cut and mode; an exchange over several domains also has the network's."""
    assert lookup_operator("torchrec", "row_wise", "HBM_ONLY", False) == "lookup"
    assert lookup_operator("torchrec", "data_parallel", "HBM_ONLY", False) == "replicated"
    assert lookup_operator("torchrec", "row_wise", "HOST_ONLY", True) == "lookup"
    assert lookup_operator("dynamicemb", "row_wise", "HYBRID", False) == "dynamicemb_hybrid"
    assert exchange_operators("row_wise", True, False, False) == ["reduce_scatter"]
    assert exchange_operators("row_wise", True, True, True) == ["all_gather", "network"]
    assert exchange_operators("row_wise", False, True, False) == ["all_to_all"]
    assert exchange_operators("column_wise", True, False, False) == ["all_to_all"]
    assert exchange_operators("data_parallel", True, True, False) == ["all_reduce", "replicated"]


def test_what_a_profile_does_not_declare() -> None:
    """It is assumed; a collective without a table has the bandwidth that the cluster states."""
    default = load_profile("torchrec-default")
    assert default.sources == {}
    assert default.source("lookup") == ASSUMED and default.source("network") == DATA_SHEET
    h100 = load_profile("h100")
    assert h100.collectives is not None and h100.collectives.network is not None
    assert h100.source("network") == ASSUMED  # its table is carried over, and not declared


@pytest.mark.parametrize("name", profile_names())
def test_every_shipped_profile_answers(name: str) -> None:
    """Every operator has a source, and what an origin calls carried over is not called measured."""
    profile = load_profile(name)
    assert all(profile.source(operator).how for operator in OPERATORS)
    curves = {"dynamicemb_caching": profile.caching, "dynamicemb_hybrid": profile.hybrid}
    for operator, curve in curves.items():
        if "carried over" in curve.origin or "not measured" in curve.origin:
            assert profile.source(operator) == ASSUMED, operator  # type: ignore[arg-type]
    if profile.step is not None:
        assert (profile.source("lookup").how == "measured") != ("carried" in profile.step.origin)
        assert profile.error is not None
