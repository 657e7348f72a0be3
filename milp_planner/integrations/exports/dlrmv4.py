"""MLPerf DLRMv4's environment: where tables go, and the workload of a plan; written and read.

Three variables place tables; others give batch, exchange, codec, deduplication and memory.

References
----------
mlcommons/training, recommendation_v4 (HSTU on Yambda-5b): ``EMB_PLACEMENT``,
``EMB_PLACEMENT_OVERRIDES``, ``EMB_SHARDING_OVERRIDES``, and ``train/gin/yambda_5b.gin``:
``BATCH_SIZE``, ``SPARSE_A2A_FWD``, ``SPARSE_A2A_BWD``, ``QCOMM_LOWMEM_CODEC``, ``EC_INDEX_DEDUP``,
``HBM_CAP_GB`` (which counts in GiB).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.problems import one_of
from milp_planner.integrations.exports import known, shell
from milp_planner.plans.placement import PlacedTable, Plan
from milp_planner.pricing.options import SHARDING_TYPES

PLACEMENT = "EMB_PLACEMENT"
PLACEMENT_OVERRIDES = "EMB_PLACEMENT_OVERRIDES"
SHARDING_OVERRIDES = "EMB_SHARDING_OVERRIDES"
PLACING = (PLACEMENT, PLACEMENT_OVERRIDES, SHARDING_OVERRIDES)

_MODES = {"hbm": "HBM_ONLY", "uvm": "HOST_ONLY", "uvm_caching": "CACHING", "auto": None}
OFFERED = ("data_parallel", "table_wise", "column_wise", "row_wise")
"""Sharding types that TorchRec's ``EmbeddingCollectionSharder`` offers."""
_TYPES = tuple(kind for kind in SHARDING_TYPES if kind != "grid_shard")
_ALIASES: dict[str, str | None] = {
    "auto": None,
    **{name: name for name in _TYPES},
    "rw": "row_wise",
    "cw": "column_wise",
    "tw": "table_wise",
    "twrw": "table_row_wise",
    "twcw": "table_column_wise",
    "dp": "data_parallel",
}

BATCH, FORWARD, BACKWARD = "BATCH_SIZE", "SPARSE_A2A_FWD", "SPARSE_A2A_BWD"
CODEC, DEDUP, HBM = "QCOMM_LOWMEM_CODEC", "EC_INDEX_DEDUP", "HBM_CAP_GB"
VARIABLES = (*PLACING, BATCH, FORWARD, BACKWARD, CODEC, DEDUP, HBM)

WIRE = ("fp32", "bf16", "fp16")
_CODECS = {"0": "stock", "1": "low_memory"}
"""0: a full fp32 temporary for the clamp; 1: cast first."""
_FLAGS = {"0": False, "1": True}
_COMMENT = """\
# The ranks are the choice of the trainer's own planner. One line in the trainer makes the plan run
# exactly: EmbeddingShardingPlanner(..., callbacks=[place]), with the module that
# milp-planner export --to torchrec-callback writes.
"""
DEFAULT_CAP = 260
"""GiB of HBM that the trainer's planner takes a rank to have, unless ``HBM_CAP_GB`` is set."""


def environment(plan: Plan, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that place a plan's tables, and those of its workload; then ``settings``.

    A data-parallel table is placed by ``auto``, since its kernel is not that of ``hbm``. Nothing
    that the trainer has on by default is turned off, and its default memory is lowered to what the
    smallest rank has.

    Raises
    ------
    BadInput
        For a table that is HYBRID, on SSD, or of dynamicemb.
    FallsShort
        For a table whose placement stops the trainer: a sharding type that its sharder does not
        offer, or host memory.
    """
    placements = {placed.name: _placement(placed) for placed in plan.tables}
    others = {name: where for name, where in placements.items() if where != "hbm"}
    return {
        PLACEMENT: "hbm",
        PLACEMENT_OVERRIDES: _join(others),
        SHARDING_OVERRIDES: _join({p.name: p.sharding_type for p in plan.tables}),
        **_asked_for(plan),
        **(settings or {}),
    }


def write(plan: Plan, settings: Mapping[str, str] | None = None) -> str:
    """The variables as lines a shell can source; empty ones are left out."""
    found = environment(plan, settings)
    lines = [f"export {key}={shlex.quote(value)}\n" for key, value in found.items() if value]
    return "".join([_COMMENT, *lines])


def notes(plan: Plan) -> list[str]:
    """Sentences about what the variables do not express."""
    found = differences(plan.model.workload)
    if any(placed.stash for placed in plan.tables):
        found.append("no variable says which tables are stashed")
    return found


def differences(work: Workload) -> list[str]:
    """Sentences: priced with something else than the trainer's default, which stays on."""
    found = []
    for name, dtype in _directions(work).items():
        if dtype == "fp32":
            found.append(
                f"priced with fp32 on the wire: {name}=fp32 instead of the trainer's fp16, which "
                "exchange_dtype: fp16 in the model prices"
            )
        elif dtype not in WIRE:
            found.append(f"the exchange in {dtype} cannot be expressed")
    if work.codec_peak_factor is not None and not _plain(work):
        found.append(
            f"a codec that needs {work.codec_peak_factor:g} times its input cannot be expressed"
        )
    elif work.codec == "stock" and not _plain(work):
        found.append(
            f"priced with the stock codec: {CODEC}=0 instead of the trainer's 1, which "
            "codec: low_memory in the model prices"
        )
    if not work.dedup:
        found.append(
            f"priced without deduplication: {DEDUP}=0 instead of the trainer's 1, which "
            "dedup: true in the model prices"
        )
    return found


def read(text: str, model: Model) -> dict[str, PinSpec]:
    """Pins that a sourced file of these variables fixes; see :func:`read_environment`."""
    return read_environment(assignments(text), model)


def workload(text: str, model: Model) -> dict[str, Any]:
    """Fields of the workload that the file sets: batch, exchange and its codec, deduplication."""
    variables = assignments(text)
    changes: dict[str, Any] = {}
    if BATCH in variables:
        changes["batch_per_rank"] = _whole(variables, BATCH)
    for name, field in ((FORWARD, "exchange_dtype"), (BACKWARD, "exchange_dtype_backward")):
        if name in variables:
            changes[field] = one_of(variables[name].strip().lower(), WIRE, name)
    for name, field, meaning in ((DEDUP, "dedup", _FLAGS), (CODEC, "codec", _CODECS)):
        if name in variables:
            changes[field] = one_of(variables[name].strip(), meaning, name)
    if "codec" in changes:
        changes["codec_peak_factor"] = None
    return changes


def unread(text: str) -> list[str]:
    """Sentences about contents of the file that a model does not hold."""
    variables, sentences = assignments(text), []
    if HBM in variables:
        cap = _whole(variables, HBM)
        sentences.append(
            f"{HBM}={cap} is what the trainer's planner takes a rank to have, of which it leaves "
            "15% unused: it decides the ranks, and is no limit of what runs, so the cluster keeps "
            "its hbm; audit FILE MODEL CLUSTER replays it"
        )
    others = [name for name in variables if name not in VARIABLES]
    if others:
        sentences.append(f"not read: {', '.join(others)}")
    return sentences


def read_environment(variables: Mapping[str, str], model: Model) -> dict[str, PinSpec]:
    """Mode and sharding type that the three variables fix, each None if the trainer decides.

    ``variables`` may be ``os.environ``: other names are ignored, missing ones mean *auto* and no
    overrides. BadInput for unknown tables (where the trainer only warns), unknown placements or
    sharding types, and entries that are not ``table=value``.
    """
    default = one_of(variables.get(PLACEMENT) or "auto", _MODES, PLACEMENT)
    modes = {
        name: one_of(value, _MODES, f"{PLACEMENT_OVERRIDES}: {name}")
        for name, value in _pairs(variables, PLACEMENT_OVERRIDES, model)
    }
    types = {
        name: one_of(value, _ALIASES, f"{SHARDING_OVERRIDES}: {name}")
        for name, value in _pairs(variables, SHARDING_OVERRIDES, model)
    }
    return {
        table.name: PinSpec(
            mode=modes.get(table.name, default), sharding_type=types.get(table.name)
        )
        for table in model.tables
    }


def assignments(text: str) -> dict[str, str]:
    """Variables that sourcing a text would set; those in ``EMB_`` must be among :data:`PLACING`.

    A variable set to the empty string is unset, as for the trainer; see
    :func:`milp_planner.integrations.exports.shell.assignments` for what is understood. BadInput,
    with the line number, for anything else and for misspelt ``EMB_`` names.
    """
    found: dict[str, str] = {}
    for line, name, value in shell.assignments(text):
        if name.startswith("EMB_"):
            one_of(name, PLACING, f"line {line}")
        found[name] = value
    return {name: value for name, value in found.items() if value.strip()}


def _asked_for(plan: Plan) -> dict[str, str]:
    """The workload's batch, exchange, codec and deduplication, and the memory of small ranks.

    What the workload does without is not written: it would turn off a default of the trainer's.
    """
    work = plan.model.workload
    found = {BATCH: str(work.batch_per_rank)}
    found |= {name: dtype for name, dtype in _directions(work).items() if dtype in ("bf16", "fp16")}
    if work.codec == "low_memory" and work.codec_peak_factor is None and not _plain(work):
        found[CODEC] = "1"
    if work.dedup:
        found[DEDUP] = "1"
    whole = min(rank.hbm_bytes for rank in plan.cluster.ranks) // 2**30
    return {**found, HBM: str(whole)} if 0 < whole < DEFAULT_CAP else found


def _directions(work: Workload) -> dict[str, str]:
    backward = work.exchange_dtype_backward or work.exchange_dtype
    return {FORWARD: work.exchange_dtype, BACKWARD: backward}


def _placement(placed: PlacedTable) -> str:
    where = f"table {placed.name!r}"
    if placed.kind == "dynamicemb":
        raise BadInput(f"{where} is of dynamicemb; DLRMv4's variables place TorchRec tables only")
    if placed.mode not in _MODES.values():
        allowed = ", ".join(mode for mode in _MODES.values() if mode)
        raise BadInput(f"{where}: mode: found {placed.mode}; allowed: {allowed}")
    if placed.sharding_type not in OFFERED:
        raise FallsShort(
            f"{where} is {placed.sharding_type}, which the sharder of the trainer's "
            f"EmbeddingCollection does not offer: it would stop with 'No available sharding type "
            f"and compute kernel combination'; allowed: {', '.join(OFFERED)}"
        )
    if placed.mode != "HBM_ONLY":
        raise FallsShort(
            f"{where} is {placed.mode}: the trainer gives its planner ddr_cap=0, with which "
            "TorchRec from 1.7 on finds no plan with rows in host memory; allowed: HBM_ONLY"
        )
    return "auto" if placed.sharding_type == "data_parallel" else "hbm"


def _join(pairs: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in pairs.items())


def _pairs(variables: Mapping[str, str], key: str, model: Model) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in (variables.get(key) or "").split(","))):
        name, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or not value:
            raise BadInput(f"{key}: found {entry!r}; allowed: table=value, separated by commas")
        if name in found:
            raise BadInput(f"{key}: table {name!r} is listed twice")
        known(model, name, key)
        found[name] = value
    return list(found.items())


def _plain(workload: Workload) -> bool:
    """Whether both directions are sent uncoded."""
    return workload.exchange_dtype == "fp32" and workload.exchange_dtype_backward in (None, "fp32")


def _whole(variables: Mapping[str, str], name: str) -> int:
    text = variables[name].strip()
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**31:
        raise BadInput(f"{name}: found {text!r}; allowed: a whole number from 1")
    return int(text)
