"""A cluster: machines with DDR, ranks with HBM, links, a profile."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from milp_planner.inputs.interconnect import Interconnect, runs_of
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import problem_at
from milp_planner.inputs.quantities import show
from milp_planner.inputs.spec import Bytes, Percent, Some, Spec
from milp_planner.inputs.ssd import Ssd
from milp_planner.inputs.table import Name
from milp_planner.inputs.two_d import TwoD

if TYPE_CHECKING:
    import networkx as nx

ID_BYTES = 8
"""Bytes of one id on the wire and in an input buffer (a KJT)."""


MAX_RANKS = 65_536
"""Most ranks of a cluster."""
_COUNT = f"a whole number, 1 to {MAX_RANKS}"

SMALLEST_MEMORY = 1024
"""A memory smaller than this, in bytes, is assumed to lack a unit."""


def _not_a_lost_unit(value: int) -> int:
    if 0 < value < SMALLEST_MEMORY:
        raise ValueError(
            f"found {value} bytes; allowed: 0, or at least {SMALLEST_MEMORY} bytes "
            f"(did you mean {value}GiB?)"
        )
    return value


class Rank(Spec):
    """One process with at most one accelerator."""

    hbm_bytes: Annotated[Bytes, AfterValidator(_not_a_lost_unit), Field(alias="hbm")]
    """HBM in bytes; 0 for a CPU-only rank."""
    reserved_bytes: Annotated[Bytes, Field(alias="reserved")] = 0
    """Further bytes of this rank's HBM to withhold from embeddings."""


class Machine(Spec):
    """One host; its DDR is shared by its ranks."""

    shorthand = ("hbm",)

    ddr_bytes: Annotated[Bytes, AfterValidator(_not_a_lost_unit), Field(alias="ddr")]
    """Host memory in bytes."""
    ssd: Ssd | None = None
    """Its solid-state drives; if absent, no table is placed on SSD."""
    ranks: Some[Rank]
    """The ranks of the machine."""

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, data: Any) -> Any:
        """``ranks: 8`` with ``hbm: 80GiB`` stands for eight equal ranks."""
        if not isinstance(data, dict) or isinstance(data.get("ranks", ()), list | tuple):
            return data
        if not _is_count(data["ranks"]):
            found = f"found {show(data['ranks'])}; allowed: {_COUNT}, or a list of ranks"
            raise problem_at(found, "ranks")
        rest = {key: value for key, value in data.items() if key not in ("ranks", "hbm")}
        rank = {"hbm": data["hbm"]} if "hbm" in data else {}
        return {**rest, "ranks": [rank] * data["ranks"]}


class Reservations(Spec):
    """Memory that embeddings may not use; the two multiples default to TorchRec's."""

    hbm_percent: Percent | None = None
    """Percentage of every rank's HBM to reserve, headroom included; by default 15 if the model does
    not give its memory outside the embeddings, else the headroom alone."""
    percent_covers: Literal["outside", "buffers"] = "outside"
    """What hbm_percent is meant for: memory outside the embeddings, so that their buffers count
    beside it, or also ``buffers``, which then count only where they exceed it."""
    outside_embeddings: Bytes | None = None
    """HBM in use outside the embeddings and their exchange at the fullest moment of a step, as
    measured on this cluster; replaces the model's value."""
    min_headroom: Percent = Fraction(5)
    """Percentage of every rank's HBM and of every machine's DDR that must stay free."""
    fragmentation: Percent = Fraction(0)
    """Percentage of every rank's HBM that the allocator holds unused, as measured (reserved less
    allocated bytes); in addition to all else."""
    dense_parameter_bytes: Bytes = 0
    """Bytes of the dense parameters on one rank."""
    dense_multiple: Annotated[int, Field(ge=0, le=100)] = 6
    """Multiple of the dense parameters to reserve (weights, gradients, optimizer, buckets)."""
    activations: Bytes = 0
    """HBM of each rank that the dense part uses only between forward and backward exchange."""
    kjt_multiple: Annotated[int, Field(ge=0, le=1000)] = 20
    """Multiple of the ids of one batch (8 bytes each) to reserve."""
    hbm_bytes: Bytes = 0
    """Further HBM to reserve per rank."""
    ddr_percent: Percent = Fraction(0)
    """Percentage of every machine's DDR to reserve, headroom included."""
    ddr_bytes: Bytes = 0
    """Further DDR to reserve per machine."""

    @model_validator(mode="after")
    def _covered(self) -> Reservations:
        if self.percent_covers == "buffers" and self.hbm_percent is None:
            raise problem_at("buffers needs hbm_percent, the percentage", "percent_covers")
        return self


_SUGAR = {"ranks_per_machine": "ranks", "hbm": "hbm", "ddr": "ddr", "ssd": "ssd"}
"""Fields next to ``machines: N``, and their names inside each machine."""


class Cluster(Spec):
    """Machines, links and the hardware profile; ranks are numbered machine by machine."""

    shorthand = tuple(_SUGAR)

    name: Name
    """Name of the cluster."""
    source: str = ""
    """Source of the figures."""
    description: str = ""
    """What the cluster is."""
    profile: Name = "torchrec-default"
    """Name of the hardware profile that prices it; a plan says so if it is not stated."""
    price_per_hour: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Price of the whole cluster for an hour, in any currency, for *what to buy*."""
    machines: Some[Machine]
    """The machines."""
    reservations: Reservations = Reservations()
    """Memory that embeddings may not use."""
    interconnect: Interconnect | None = None
    """Links between ranks; needed with more than one rank."""
    two_d: TwoD | None = None
    """Division into sharding groups that each hold every table; if absent, there is one."""

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, data: Any) -> Any:
        """``machines: 4`` with ``ranks_per_machine``, ``hbm`` and ``ddr`` stands for a list."""
        if not isinstance(data, dict):
            return data
        if "machines" not in data:
            raise problem_at("is missing; allowed: a number, or a list of machines", "machines")
        machines = data["machines"]
        if isinstance(machines, list | tuple):
            _refuse_sugar(data)
            _check_ranks(machines)
            return data
        if not _is_count(machines):
            allowed = f"{_COUNT}, or a list of machines"
            raise problem_at(f"found {show(machines)}; allowed: {allowed}", "machines")
        _require_sugar(data)
        machine = {inner: data[outer] for outer, inner in _SUGAR.items() if outer in data}
        rest = {key: value for key, value in data.items() if key not in _SUGAR}
        return {**rest, "machines": [machine] * machines}

    @model_validator(mode="after")
    def _linked(self) -> Cluster:
        if self.num_ranks > 1 and self.interconnect is None:
            raise problem_at("is missing; needed with more than one rank", "interconnect")
        links = self.interconnect
        if links is None:
            return self
        if links.domains is not None:
            links.domains.spanned(len(self.machines))
        domains = len(links.domain_machines(len(self.machines)))
        if domains > 1 and links.inter_machine is None:
            what = "machine" if links.domains is None else "domain"
            raise problem_at(
                f"is missing; needed with more than one {what}", "interconnect", "inter_machine"
            )
        return self

    @property
    def assumed_profile(self) -> str | None:
        """What to say of a profile that nobody stated."""
        if "profile" in self.model_fields_set:
            return None
        return (
            f"the cluster states no profile: prices are those of {self.profile} "
            "(milp-planner list profiles)"
        )

    @property
    def num_ranks(self) -> int:
        """Number of ranks of all machines."""
        return sum(len(machine.ranks) for machine in self.machines)

    @property
    def replicas(self) -> int:
        """Number of sharding groups; 1 if the cluster is not divided."""
        whole = None if self.two_d is None else self.two_d.whole
        return 1 if whole is None else whole.num_ranks // self.num_ranks

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """All ranks in the order of their numbers."""
        return tuple(rank for machine in self.machines for rank in machine.ranks)

    @property
    def cpu_only(self) -> bool:
        """Whether no rank has HBM: everything then lives in DDR."""
        return not any(rank.hbm_bytes for rank in self.ranks)

    @property
    def machine_ranks(self) -> tuple[tuple[int, ...], ...]:
        """Rank numbers of each machine, as in an Instance's ``machines``."""
        numbers = iter(range(self.num_ranks))
        return tuple(tuple(next(numbers) for _ in machine.ranks) for machine in self.machines)

    @property
    def span(self) -> int:
        """Machines over which table-row-wise and grid shards split rows."""
        domains = None if self.interconnect is None else self.interconnect.domains
        return 1 if domains is None else domains.spanned(len(self.machines))

    @property
    def row_groups(self) -> tuple[tuple[int, ...], ...]:
        """Ranks of each run of :attr:`span` machines, which hold such shards."""
        return runs_of(self.machine_ranks, self.span)

    def graph(self) -> nx.Graph:
        """The links between the ranks; one rank without an interconnect is a lone node."""
        if self.interconnect is None:
            import networkx as nx

            lone: nx.Graph[int | str] = nx.Graph()
            lone.add_nodes_from(range(self.num_ranks))
            return lone
        return self.interconnect.graph(self.machine_ranks)

    def usable_hbm(self, model: Model) -> tuple[int, ...]:
        """HBM in bytes that the embeddings of ``model`` may use, for each rank.

        hbm · (100 − percent − fragmentation)/100 less everything in :meth:`fixed_hbm` and this
        rank's own reservation, rounded down, never below 0; a CPU-only rank has 0. The exchange is
        not included: see :func:`milp_planner.pricing.outside.capacities`.

        References
        ----------
        TorchRec 1.8.0, ``HeuristicalStorageReservation`` (15%, 6×, 20×).
        """
        return self._left(model, self.outside_percent(model))

    def room_for_rows(self, model: Model) -> tuple[int, ...] | None:
        """HBM in bytes that weights and state alone may use beside hbm_percent, for each rank.

        None unless the percentage covers buffers.
        """
        held = self.reservations
        if held.percent_covers != "buffers" or held.hbm_percent is None:
            return None
        return self._left(model, max(held.hbm_percent, held.min_headroom))

    def _left(self, model: Model, percent: Fraction) -> tuple[int, ...]:
        fixed = sum(self.fixed_hbm(model).values())
        free = 1 - min(Fraction(100), percent + self.reservations.fragmentation) / 100
        return tuple(
            max(0, int(rank.hbm_bytes * free - fixed - rank.reserved_bytes)) for rank in self.ranks
        )

    def says_outside(self, model: Model) -> bool:
        """Whether cluster or model give the memory of a step outside the embeddings."""
        return (
            self.reservations.outside_embeddings is not None or model.outside_embeddings is not None
        )

    def outside_percent(self, model: Model) -> Fraction:
        """Percentage of HBM that is reserved, at least the headroom.

        It is the given one, or else TorchRec's 15 if the model does not give its memory outside the
        embeddings. One that covers buffers is not reserved beside them (:meth:`room_for_rows`).
        """
        held = self.reservations
        if held.percent_covers == "buffers":
            return held.min_headroom
        assumed = Fraction(0 if self.says_outside(model) else 15)
        percent = assumed if held.hbm_percent is None else held.hbm_percent
        return max(percent, held.min_headroom)

    def withheld_percent(self, model: Model) -> Fraction:
        """:meth:`outside_percent` plus fragmentation, at most 100."""
        return min(Fraction(100), self.outside_percent(model) + self.reservations.fragmentation)

    def fixed_hbm(self, model: Model) -> dict[str, Fraction]:
        """HBM in bytes that every rank reserves besides percentages and its own reservation.

        By entry: ``dense`` (dense_multiple · dense_parameter_bytes, or parameter_multiple ·
        parameter_bytes of the model), ``dense_activations`` (bytes per sample · samples),
        ``measured`` (the measured peak, less its bytes per sample · samples), ``context``,
        ``batch`` (kjt_multiple · 8 · ids of the rank's batch), ``further``.
        """
        held, stated = self.reservations, model.outside_embeddings
        batch = model.workload.batch_per_rank
        ids = sum((Fraction(t.lookups_per_sample) for t in model.tables), Fraction(0))
        found = {
            "dense": Fraction(held.dense_multiple * held.dense_parameter_bytes),
            "batch": held.kjt_multiple * ID_BYTES * batch * ids,
            "further": Fraction(held.hbm_bytes),
        }
        if held.outside_embeddings is not None:
            return found | {"measured": Fraction(held.outside_embeddings), "batch": Fraction(0)}
        if stated is None:
            return found
        found["dense_activations"] = Fraction(stated.activation_bytes_per_sample * batch)
        if stated.measured_peak is not None:
            return found | {"measured": Fraction(stated.constant_peak), "batch": Fraction(0)}
        found["dense"] += stated.parameter_multiple * stated.parameter_bytes
        found["context"] = Fraction(stated.context)
        return found

    def usable_ddr(self, model: Model) -> tuple[int, ...]:
        """DDR in bytes that embeddings of ``model`` and their checkpoint may use, for each machine.

        ddr · (100 − percent)/100 less further reservations and the ready batches of its ranks' data
        loaders, rounded down, at least 0.
        """
        held = self.reservations
        free = 1 - max(held.ddr_percent, held.min_headroom) / 100
        return tuple(
            max(0, int(m.ddr_bytes * free - held.ddr_bytes - len(m.ranks) * model.loader_bytes))
            for m in self.machines
        )

    @property
    def has_ssd(self) -> bool:
        """Whether any machine has solid-state drives."""
        return any(machine.ssd is not None for machine in self.machines)

    def usable_ssd(self) -> tuple[int, ...]:
        """Bytes of live rows that each machine's SSD may hold; 0 without SSD."""
        return tuple(machine.ssd.live_bytes if machine.ssd else 0 for machine in self.machines)

    @property
    def ssd_share(self) -> float:
        """Smallest share of a rank in its machine's SSD bandwidth, bytes per second.

        Machines without SSD do not count; infinite if there is no SSD.
        """
        return min(
            (m.ssd.bandwidth / len(m.ranks) for m in self.machines if m.ssd), default=float("inf")
        )


TwoD.model_rebuild(_types_namespace={"Cluster": Cluster})
Cluster.model_rebuild()


def _refuse_sugar(data: dict[str, Any]) -> None:
    for name in _SUGAR:
        if name in data:
            raise problem_at(
                "needs a number of machines, as in machines: 4; "
                "in a list, every machine has its own ddr, ssd, ranks and hbm",
                name,
            )


def _require_sugar(data: dict[str, Any]) -> None:
    for name in _SUGAR:
        if name not in data and name != "ssd":
            raise problem_at(f"is missing; machines: {data['machines']} needs it", name)
    ranks = data["ranks_per_machine"]
    if _is_count(ranks) and ranks * data["machines"] > MAX_RANKS:
        raise problem_at(
            f"found {ranks} on each of {data['machines']} machines; "
            f"allowed: up to {MAX_RANKS} ranks in all",
            "ranks_per_machine",
        )
    if not _is_count(ranks):
        raise problem_at(f"found {show(ranks)}; allowed: {_COUNT}", "ranks_per_machine")


def _check_ranks(machines: Sequence[Any]) -> None:
    """Refuse more ranks than a cluster may have, before any machine lists its own."""
    ranks = sum(_ranks_of(each) for each in machines)
    if ranks > MAX_RANKS:
        raise problem_at(f"found {ranks:,} ranks; allowed: up to {MAX_RANKS} in all", "machines")


def _ranks_of(machine: Any) -> int:
    """Number of ranks that a machine of a list has, as far as it is known before it is checked."""
    ranks = machine.get("ranks") if isinstance(machine, dict) else None
    if isinstance(ranks, list | tuple):
        return len(ranks)
    return int(ranks) if _is_count(ranks) and ranks is not None else 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_RANKS
