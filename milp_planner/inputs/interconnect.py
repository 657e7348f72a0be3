"""The links between ranks: bandwidths inside and between machines, as a graph."""

from __future__ import annotations

from milp_planner.inputs.spec import Bandwidth, Spec


class Interconnect(Spec):
    """Links in bytes per second, per rank and direction."""

    intra_machine: Bandwidth
    """One rank's link to the other ranks of its machine (NVLink, Infinity Fabric, PCIe)."""
    inter_machine: Bandwidth | None = None
    """One rank's share of its machine's network cards; needed with more than one machine."""
