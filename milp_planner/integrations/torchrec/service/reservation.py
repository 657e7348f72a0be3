"""TorchRec's SKU-aware reservation, which its open-source provider does not build.

References
----------
torchrec 1.9.2, ``planner/storage_reservations.py`` (``SKUAwareStorageReservation``) and
``planner/types.py`` (``PlannerConfig.model_base_bytes``, ``home_sku``).
"""

from __future__ import annotations

from collections.abc import Mapping

from torchrec.distributed.planner.storage_reservations import SKUAwareStorageReservation
from torchrec.distributed.planner.types import HardwareConfig, PlannerConfig

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import choice

PERCENTAGE, DENSE_MULTIPLE = 0.15, 6.0
"""TorchRec's defaults: share of the home SKU's HBM, and copies of the dense parameters."""


def sku_aware(
    config: PlannerConfig, hardware: Mapping[str, HardwareConfig], overhead: int
) -> SKUAwareStorageReservation:
    """Reservation of every rank, the same bytes on every SKU.

    Base bytes (``model_base_bytes``), or the share of the home SKU's HBM and 6 times the dense
    parameters. Added to either: 20 times the ids of a batch, and ``overhead``.

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
    margin = 0 if config.model_base_bytes is not None else _margin(config, hardware)
    multiple = config.parameter_multiplier
    return SKUAwareStorageReservation(
        margin_bytes=margin,
        runtime_overhead_bytes=overhead,
        parameter_multiplier=DENSE_MULTIPLE if multiple is None else multiple,
        model_base_bytes=config.model_base_bytes,
        dense_tensor_estimate=config.dense_tensor_estimate,
    )


def _margin(config: PlannerConfig, hardware: Mapping[str, HardwareConfig]) -> int:
    """The share of the home SKU's HBM."""
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
