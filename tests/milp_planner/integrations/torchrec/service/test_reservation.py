"""The SKU-aware reservation: TorchRec's vectors, what it lacks, and a dry run over three SKUs."""

from typing import Any

import pytest
import torch
from torch import nn
from torchrec.distributed.planner.storage_reservations import (
    HeuristicalStorageReservation,
    SKUAwareStorageReservation,
)
from torchrec.distributed.planner.types import (
    HardwareConfig,
    ParameterConstraints,
    PlannerConfig,
    PlannerError,
    PlannerErrorType,
    StorageReservationPolicy,
)

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.service import (
    MilpPlannerConfig,
    MilpPlannerProvider,
    dry_run,
)

from ..models import QUICK, bag_sharders, bags, topology
from .requests import GIB, LP, inputs, request

SKUS = {
    name: HardwareConfig(hbm_cap_bytes=size * GIB, ddr_cap_bytes=GIB)
    for name, size in (("home", 80), ("large", 180))
}
AWARE = StorageReservationPolicy.SKU_AWARE


class Model(nn.Module):
    """Two tables, with 4,206,592 bytes of dense parameters and 8,200 of buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = bags([(1000, 64), (2000, 64)])
        self.linear = nn.Linear(1024, 1024, device=torch.device("meta"))
        self.norm = nn.BatchNorm1d(1024, device=torch.device("meta"))


def left(sku: str, overhead: int = 0, **config: Any) -> int:
    """HBM of rank 0 of a SKU after the provider's reservation."""
    asked = request(
        model=Model(),
        config=PlannerConfig(planner_variant=LP, storage_reservation_policy=AWARE, **config),
        storage_reservation=None,
    )
    provider = MilpPlannerProvider(SKUS, {sku: overhead})
    limits = {
        name: ParameterConstraints(pooling_factors=[pooling])
        for name, pooling in (("t0", 10.0), ("t1", 20.0))
    }
    whole = topology(4, hbm=SKUS[sku].hbm_cap_bytes)
    made = provider.build_storage_reservation(sku, asked)
    assert isinstance(made, SKUAwareStorageReservation)
    found = made.reserve(whole, 512, asked.model, bag_sharders(), limits)
    return int(found.devices[0].storage.hbm)


def test_vectors() -> None:
    """15% of the home SKU's HBM on both SKUs; base bytes and overhead replace both."""
    assert left("home", home_sku="home") == 72_986_738_680
    assert left("large", home_sku="home") == 180_360_921_080
    assert left("home", 2 * GIB, model_base_bytes=20 * GIB) == 62_274_568_192


def reserved(sku: str, size: int, terms: bool, share: float = 0.15) -> int:
    """Bytes that a SKU of this many GiB reserves where the home SKU has 80 GiB; a third of a GiB of
    dense parameters, 1 GiB for ids (20 copies of 8 bytes), 3 GiB of overhead."""
    skus = {"home": SKUS["home"], sku: HardwareConfig(hbm_cap_bytes=size * GIB)}
    config = MilpPlannerConfig(
        planner_variant=LP, storage_reservation_policy=AWARE, home_sku="home",
        storage_reservation_percentage=share, reserve_module_terms=terms,
    )  # fmt: skip
    dense = nn.ParameterList([nn.Parameter(torch.empty(2**30 // 12, device="meta"))])
    model = nn.ModuleDict({"bags": bags([(1000, 64)]), "dense": dense})
    asked = request(model=model, config=config, storage_reservation=None)
    made = MilpPlannerProvider(skus, {sku: 3 * GIB}).build_storage_reservation(sku, asked)
    ids = {"t0": ParameterConstraints(pooling_factors=[2**30 / 20 / 8 / 512])}
    found = made.reserve(topology(4, hbm=size * GIB), 512, model, bag_sharders(), ids)
    return size * GIB - int(found.devices[0].storage.hbm)


def test_module_terms_are_left_out_on_request() -> None:
    """TorchRec #4736 by hand: 12 + 2 + 1 + 3 = 18 GiB with them, 12 + 3 = 15 without, on any SKU;
    86% of the home SKU: 74.8 and 71.8."""
    for sku, size in (("home", 80), ("large", 288)):
        assert reserved(sku, size, True) == pytest.approx(18 * GIB, abs=4096)
        assert reserved(sku, size, False) == 15 * GIB
    assert reserved("home", 80, True, 0.86) == pytest.approx(74.8 * GIB, abs=4096)
    assert reserved("home", 80, False, 0.86) == pytest.approx(71.8 * GIB, abs=1)


def test_a_reservation_of_everything_is_told() -> None:
    """Without module terms TorchRec's helper would stop at 0 bytes left and say nothing."""
    with pytest.raises(PlannerError, match="takes 83 GiB of every rank's 80 GiB") as told:
        reserved("home", 80, False, 1.0)
    assert told.value.error_type is PlannerErrorType.INSUFFICIENT_STORAGE


def test_what_is_reserved_is_part_of_the_request() -> None:
    """A request's hash differs with the flag and with the multiple, and only then."""

    def key(**config: Any) -> str:
        return str(request(config=MilpPlannerConfig(planner_variant=LP, **config)).request_hash)

    assert key() == key(reserve_module_terms=True)
    assert len({key(), key(reserve_module_terms=False), key(parameter_multiplier=4.0)}) == 3


@pytest.mark.parametrize(
    ("hardware", "config", "why"),
    [
        (SKUS, {}, "allowed: model_base_bytes, or home_sku"),
        (SKUS, {"home_sku": "hom"}, "home_sku 'hom'.*home"),
        (None, {"home_sku": "home"}, "give the provider hardware"),
        ({"home": HardwareConfig()}, {"home_sku": "home"}, "HBM of home_sku 'home' is not known"),
    ],
)
def test_what_is_lacking_is_a_sentence(hardware: Any, config: dict[str, Any], why: str) -> None:
    """Neither base nor home SKU, an unknown one, and one of unknown size."""
    asked = request(
        config=PlannerConfig(planner_variant=LP, storage_reservation_policy=AWARE, **config),
        storage_reservation=None,
    )
    with pytest.raises(BadInput, match=why):
        MilpPlannerProvider(hardware).build_storage_reservation("home", asked)


def test_other_policies_are_torchrecs() -> None:
    """The request's own reservation wins, and TorchRec builds other policies."""
    asked = request()
    provider = MilpPlannerProvider(SKUS)
    assert provider.build_storage_reservation("home", asked) is asked.storage_reservation
    plain = provider.build_storage_reservation("home", request(storage_reservation=None))
    assert isinstance(plain, HeuristicalStorageReservation)


def test_a_dry_run_over_three_skus() -> None:
    """A share of a large home SKU is too much for a small one, a share of its own is not."""
    skus = {
        name: HardwareConfig(hbm_cap_bytes=size * 2**20, ddr_cap_bytes=2**20)
        for name, size in (("small", 100), ("middle", 300), ("large", 1000))
    }
    given = inputs(storage_reservation=None)

    def fits(**more: Any) -> list[bool | None]:
        return [row.fits for row in dry_run(given, skus, settings=QUICK, **more).rows]

    assert fits(home_sku="small") == [True, True, True]
    assert fits(home_sku="large") == fits(base_bytes=250 * 2**20) == [False, True, True]
    with pytest.raises(BadInput, match="allowed: either"):
        dry_run(inputs(), skus, home_sku="small")
