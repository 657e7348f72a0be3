"""MLPerf DLRMv4's environment: where tables go, and the workload of a plan; written and read.

Three variables place tables; others give batch, exchange, codec, deduplication and memory.

References
----------
mlcommons/training, recommendation_v4 (HSTU on Yambda-5b): ``EMB_PLACEMENT``,
``EMB_PLACEMENT_OVERRIDES``, ``EMB_SHARDING_OVERRIDES``, and ``train/gin/yambda_5b.gin``:
``BATCH_SIZE``, ``SPARSE_A2A_FWD``, ``SPARSE_A2A_BWD``, ``QCOMM_LOWMEM_CODEC``, ``EC_INDEX_DEDUP``,
``HBM_CAP_GB`` (which counts in GiB). ``TORCHREC_VERSION`` is ours: the TorchRec that is installed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs.constraints import PinSpec, ShardingType
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
OFFERED: tuple[ShardingType, ...] = ("data_parallel", "table_wise", "column_wise", "row_wise")
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
TORCHREC = "TORCHREC_VERSION"
VARIABLES = (*PLACING, BATCH, FORWARD, BACKWARD, CODEC, DEDUP, HBM, TORCHREC)
DEFAULTS = {BATCH: "1024", FORWARD: "fp16", BACKWARD: "fp16", CODEC: "1", DEDUP: "1"}
"""What the trainer takes for the variables of the workload that are not set."""
_FIELDS = {
    "batch_per_rank": BATCH, "exchange_dtype": FORWARD, "exchange_dtype_backward": BACKWARD,
    "codec": CODEC, "dedup": DEDUP,
}  # fmt: skip

WIRE = ("fp32", "bf16", "fp16")
_CODECS = {"0": "stock", "1": "low_memory"}
"""0: a full fp32 temporary for the clamp; 1: cast first."""
_PEAKS = {2.5: "stock", 1.5: "low_memory"}
"""Their memory as a multiple of an fp32 input that is sent in 16 bits."""
_FLAGS = {"0": False, "1": True}
_COMMENT = """\
# The ranks are the choice of the trainer's own planner. One line in the trainer makes the plan run
# exactly: EmbeddingShardingPlanner(..., callbacks=[place]), with the module that
# milp-planner export --to torchrec-callback writes.
"""
DEFAULT_CAP = 260
"""GiB of HBM that the trainer's planner takes a rank to have, unless ``HBM_CAP_GB`` is set."""
NO_HOST_MEMORY = (
    "the trainer gives its planner ddr_cap=0, with which TorchRec from 1.7 on finds no plan with "
    f"rows in host memory; allowed: HBM_ONLY, or {TORCHREC} below 1.7, which takes 0 for 128 GiB"
)


def environment(plan: Plan, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that place a plan's tables, and those of its workload; then ``settings``.

    A data-parallel table is placed by ``auto``, since its kernel is not that of ``hbm``. The
    trainer's default memory is lowered to what the smallest rank has.

    Raises
    ------
    BadInput
        For a table that is HYBRID, on SSD, or of dynamicemb.
    FallsShort
        For a table whose placement stops the trainer (a sharding type that its sharder does not
        offer; host memory, unless ``settings`` state a TorchRec that has it), and for what was
        priced otherwise than any value of the variables.
    """
    further = settings or {}
    hosted = has_host_memory(further)
    placements = {placed.name: _placement(placed, hosted) for placed in plan.tables}
    others = {name: where for name, where in placements.items() if where != "hbm"}
    return {
        PLACEMENT: "hbm",
        PLACEMENT_OVERRIDES: _join(others),
        SHARDING_OVERRIDES: _join({p.name: p.sharding_type for p in plan.tables}),
        **_asked_for(plan),
        **further,
    }


def write(plan: Plan, settings: Mapping[str, str] | None = None) -> str:
    """The variables as lines a shell can source; empty ones are left out."""
    found = environment(plan, settings)
    lines = [f"export {key}={shlex.quote(value)}\n" for key, value in found.items() if value]
    return "".join([_COMMENT, *lines])


def notes(plan: Plan) -> list[str]:
    """Sentences about defaults of the trainer that the variables turn off."""
    return turned_off(plan.model.workload)


def turned_off(work: Workload) -> list[str]:
    """Sentences: priced without a default of the trainer, which the file therefore turns off."""
    off = [(name, dtype, "exchange_dtype: fp16") for name, dtype in _directions(work).items()
           if dtype == "fp32"]  # fmt: skip
    if not _plain(work) and _codec(work) == "stock":
        off.append((CODEC, "0", "codec: low_memory"))
    if not work.dedup:
        off.append((DEDUP, "0", "dedup: true"))
    return [
        f"{name}={value}, as priced; the trainer's default is {DEFAULTS[name]}, which {field} in "
        "the model prices"
        for name, value, field in off
    ]


def read(text: str, model: Model) -> dict[str, PinSpec]:
    """Pins that a sourced file of these variables fixes; see :func:`read_environment`."""
    return read_environment(assignments(text), model)


def workload(text: str, model: Model) -> dict[str, Any]:
    """Fields of the workload that the file sets: batch, exchange and its codec, deduplication."""
    return _workload(assignments(text))


def _workload(variables: Mapping[str, str]) -> dict[str, Any]:
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


def stated(text: str, model: Model) -> Model:
    """The model with the workload that the trainer has with such a file, its defaults included."""
    document = model.to_dict()
    document["workload"] |= _workload({**DEFAULTS, **assignments(text)})
    for table in document["tables"]:
        table |= {"exchange_dtype": None, "exchange_dtype_backward": None}
    return Model.from_dict(document, "as the file states it")


def unlike(text: str, model: Model) -> list[str]:
    """Sentences: what :func:`stated` has otherwise than the model, and by which variable."""
    variables, found = assignments(text), []
    runs, work = stated(text, model).workload, model.workload
    has = work.model_copy(
        update={
            "exchange_dtype_backward": work.exchange_dtype_backward or work.exchange_dtype,
            "codec": work.codec if _plain(work) else _codec(work),
        }
    )
    for field, name in _FIELDS.items():
        ours, theirs = getattr(has, field), getattr(runs, field)
        if ours != theirs and (field != "codec" or not _plain(runs)):
            value = variables.get(name, DEFAULTS[name]).strip()
            why = "" if name in variables else ", the trainer's default"
            found.append(f"{name}={value}{why}: {field} {_text(theirs)}; the model has "
                         f"{_text(ours)}")  # fmt: skip
    own = [t.name for t in model.tables if t.exchange_dtype or t.exchange_dtype_backward]
    if own:
        found.append(f"{FORWARD} and {BACKWARD} hold for all tables, also {listed(own, 3)}")
    return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def cap_of(variables: Mapping[str, str]) -> int:
    """GiB of HBM that the trainer's planner takes a rank to have."""
    return _whole(variables, HBM) if HBM in variables else DEFAULT_CAP


def has_host_memory(variables: Mapping[str, str], torchrec: str | None = None) -> bool:
    """Whether TorchRec takes the trainer's ``ddr_cap=0`` for 128 GiB, as all before 1.7 do.

    The version is that of the variables or, where they state none, ``torchrec``.
    """
    version = (variables.get(TORCHREC) or torchrec or "").strip()
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})(?![\d])", version)
    if version and found is None:
        raise BadInput(f"{TORCHREC}: found {version!r}; allowed: a version such as 1.4.0")
    return found is not None and (int(found[1]), int(found[2])) < (1, 7)


def unread(text: str) -> list[str]:
    """Sentences about contents of the file that a model does not hold."""
    variables, sentences = assignments(text), []
    if HBM in variables:
        cap = cap_of(variables)
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
    """The workload's batch, exchange, codec and deduplication, and the memory of small ranks."""
    work = plan.model.workload
    _refuse_other_exchanges(plan)
    found = {BATCH: str(work.batch_per_rank), **_directions(work)}
    if not _plain(work):
        codec = _codec(work)
        if codec is None:
            raise FallsShort(
                f"priced with a codec that needs {work.codec_peak_factor:g} times its input, which "
                f"no value of {CODEC} gives; allowed: codec: stock (2.5) or low_memory (1.5)"
            )
        found[CODEC] = next(value for value, name in _CODECS.items() if name == codec)
    found[DEDUP] = "1" if work.dedup else "0"
    whole = min(rank.hbm_bytes for rank in plan.cluster.ranks) // 2**30
    return {**found, HBM: str(whole)} if 0 < whole < DEFAULT_CAP else found


def _refuse_other_exchanges(plan: Plan) -> None:
    """FallsShort for what was priced and no variable says: the wire's type, and stashing."""
    sent = _directions(plan.model.workload)
    for name, dtype in sent.items():
        if dtype not in WIRE:
            raise FallsShort(f"priced with {dtype} on the wire; {name} allows: {', '.join(WIRE)}")
    for table in plan.model.tables:
        own = table.exchange_dtype, table.exchange_dtype_backward
        if any(each not in (None, all_) for each, all_ in zip(own, sent.values(), strict=True)):
            raise FallsShort(f"table {table.name!r} has an exchange_dtype of its own; "
                             f"{FORWARD} and {BACKWARD} hold for all")  # fmt: skip
    if stashed := [placed.name for placed in plan.tables if placed.stash]:
        raise FallsShort(f"table {stashed[0]!r} is stashed, for which there is no variable")


def _codec(work: Workload) -> str | None:
    """The codec whose memory was priced; None if it is neither's."""
    return work.codec if work.codec_peak_factor is None else _PEAKS.get(work.codec_peak_factor)


def _directions(work: Workload) -> dict[str, str]:
    backward = work.exchange_dtype_backward or work.exchange_dtype
    return {FORWARD: work.exchange_dtype, BACKWARD: backward}


def _placement(placed: PlacedTable, hosted: bool) -> str:
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
    if placed.mode != "HBM_ONLY" and not hosted:
        raise FallsShort(f"{where} is {placed.mode}: {NO_HOST_MEMORY}")
    if placed.sharding_type == "data_parallel":
        return "auto"
    return next(name for name, mode in _MODES.items() if mode == placed.mode)


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
