"""TorchRec's SKU-aware reservation, which its open-source provider does not build.

References
----------
torchrec 1.9.2, ``planner/storage_reservations.py`` (``SKUAwareStorageReservation``) and
``planner/types.py`` (``PlannerConfig.model_base_bytes``, ``home_sku``); pull request 4736
(``reserve_module_terms``), which is later than 1.9.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn
from torchrec.distributed.planner.storage_reservations import (
    FixedAbsoluteStorageReservation,
    SKUAwareStorageReservation,
)
from torchrec.distributed.planner.types import (
    HardwareConfig,
    ParameterConstraints,
    PlannerConfig,
    PlannerError,
    PlannerErrorType,
    StorageReservation,
    Topology,
)
from torchrec.distributed.types import ModuleSharder

from milp_planner.drawing.units import show_bytes
from milp_planner.errors import BadInput
from milp_planner.inputs.problems import choice

PERCENTAGE, DENSE_MULTIPLE = 0.15, 6.0
"""TorchRec's defaults: share of the home SKU's HBM, and copies of the dense parameters."""


@dataclass(frozen=True)
class MilpPlannerConfig(PlannerConfig):
    """TorchRec's configuration, with a field that came after 1.9.2."""

    reserve_module_terms: bool = True
    """Whether the SKU-aware reservation adds what it derives from the module, which is the dense
    parameters and the ids of a batch; without them it is a percentage of the home SKU alone."""

    def request_hash_extension(self) -> tuple[object, ...] | None:
        """What the request's hash has to know beyond TorchRec's own fields."""
        own = super().request_hash_extension()
        if self.reserve_module_terms:  # as if there were no such field
            return own
        return (*(own or ()), ("reserve_module_terms", False))


class StaticReservation(FixedAbsoluteStorageReservation):
    """The same bytes of every rank whatever the module; a sentence where nothing would be left."""

    def reserve(
        self,
        topology: Topology,
        batch_size: int,
        module: nn.Module,
        sharders: list[ModuleSharder[nn.Module]],
        constraints: dict[str, ParameterConstraints] | None = None,
    ) -> Topology:
        """The topology after the reservation; TorchRec's ``PlannerError`` if no HBM is left."""
        left = super().reserve(topology, batch_size, module, sharders, constraints)
        if left.devices[0].storage.hbm <= 0:
            hbm = topology.devices[0].storage.hbm
            raise PlannerError(
                f"the SKU-aware reservation takes {show_bytes(self._hbm_reserved_bytes)} of every "
                f"rank's {show_bytes(hbm)}; lower storage_reservation_percentage, model_base_bytes "
                "or the overhead",
                PlannerErrorType.INSUFFICIENT_STORAGE,
            )
        return left


def sku_aware(
    config: PlannerConfig, hardware: Mapping[str, HardwareConfig], overhead: int
) -> StorageReservation:
    """Reservation of every rank, the same bytes on every SKU.

    Base bytes (``model_base_bytes``), or the share of the home SKU's HBM and 6 times the dense
    parameters (``parameter_multiplier``). Added to either: 20 times the ids of a batch, and
    ``overhead``. Without ``reserve_module_terms`` (:class:`MilpPlannerConfig`) neither dense
    parameters nor ids count.

    Parameters
    ----------
    config : PlannerConfig
    hardware : mapping of SKU to HardwareConfig
        Must include the home SKU.
    overhead : int
        Bytes that the runtime uses on the planned SKU.

    Raises
    ------
    BadInput
        Without base bytes and home SKU, or if the home SKU's HBM is not known.
    """
    base, multiple = config.model_base_bytes, config.parameter_multiplier
    margin = 0 if base is not None else _margin(config, hardware)
    if not getattr(config, "reserve_module_terms", True):
        return StaticReservation((margin if base is None else base) + overhead)
    return SKUAwareStorageReservation(
        margin_bytes=margin,
        runtime_overhead_bytes=overhead,
        parameter_multiplier=DENSE_MULTIPLE if multiple is None else multiple,
        model_base_bytes=config.model_base_bytes,
        dense_tensor_estimate=config.dense_tensor_estimate,
    )


def _margin(config: PlannerConfig, hardware: Mapping[str, HardwareConfig]) -> int:
    where, home = "storage_reservation_policy sku_aware", config.home_sku
    if home is None:
        raise BadInput(f"{where}: found neither; allowed: model_base_bytes, or home_sku")
    if not hardware:
        raise BadInput(f"{where}: home_sku {home!r} is not known; give the provider hardware")
    if home not in hardware:
        raise BadInput(f"{where}: home_sku {home!r}: {choice(home, hardware)}")
    hbm = hardware[home].hbm_cap_bytes
    if hbm is None:
        raise BadInput(f"{where}: the HBM of home_sku {home!r} is not known")
    share = config.storage_reservation_percentage
    return int((PERCENTAGE if share is None else share) * hbm)
