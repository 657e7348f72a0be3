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

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.problems import one_of
from milp_planner.inputs.table import PinSpec
from milp_planner.integrations.exports import known
from milp_planner.plans.placement import PlacedTable, Plan
from milp_planner.pricing.options import SHARDING_TYPES

PLACEMENT = "EMB_PLACEMENT"
PLACEMENT_OVERRIDES = "EMB_PLACEMENT_OVERRIDES"
SHARDING_OVERRIDES = "EMB_SHARDING_OVERRIDES"
PLACING = (PLACEMENT, PLACEMENT_OVERRIDES, SHARDING_OVERRIDES)

_PLACEMENTS = {"HBM_ONLY": "hbm", "HOST_ONLY": "uvm", "CACHING": "uvm_caching"}
_MODES = {placement: mode for mode, placement in _PLACEMENTS.items()} | {"auto": None}
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
_DEFAULT = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}")


def environment(plan: Plan) -> dict[str, str]:
    """The variables with which the trainer runs a plan as priced.

    BadInput for a table that these variables cannot place: HYBRID, grid_shard, or dynamicemb.
    """
    placements = {placed.name: _placement(placed) for placed in plan.tables}
    common = Counter(placements.values()).most_common(1)
    default = common[0][0] if common else "auto"
    others = {name: where for name, where in placements.items() if where != default}
    return {
        PLACEMENT: default,
        PLACEMENT_OVERRIDES: _join(others),
        SHARDING_OVERRIDES: _join({p.name: p.sharding_type for p in plan.tables}),
        **_priced_for(plan),
    }


def write(plan: Plan) -> str:
    """The variables as lines a shell can source."""
    lines = [f"export {key}={shlex.quote(value)}" for key, value in environment(plan).items()]
    return "\n".join(lines) + "\n"


def notes(plan: Plan) -> list[str]:
    """Sentences about what the variables cannot express."""
    work, expressed = plan.model.workload, _priced_for(plan)
    free = min(plan.cluster.usable_hbm(plan.model)) / 2**30
    found = ["the ranks are left to the trainer's own planner"]
    if HBM in expressed:
        found.append(f"{HBM} is before reservations; the plan keeps within {free:.1f} GiB")
    else:
        found.append(f"{HBM} counts in whole GiB, of which a rank has none")
    if FORWARD not in expressed or BACKWARD not in expressed:
        found.append(f"the exchange in {work.exchange_dtype} cannot be expressed")
    if work.codec_peak_factor is not None and not _plain(work):
        found.append(
            f"a codec that needs {work.codec_peak_factor:g} times its input cannot be expressed"
        )
    if any(placed.stash for placed in plan.tables):
        found.append("no variable says which tables are stashed")
    if any(placed.column_shards > 1 for placed in plan.tables):
        found.append("the width of column shards is left to the trainer")
    ratios = sorted({str(p.cache_ratio) for p in plan.tables if p.mode == "CACHING"})
    if ratios:
        found.append(f"the cache ratio of uvm_caching tables ({', '.join(ratios)}) has no variable")
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
            f"{HBM}={cap} is the cluster's, not the model's: plan on one whose ranks have "
            f"hbm: {cap}GiB"
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

    Comments, several assignments per line, lines continued by a backslash, and ``${NAME:-default}``
    are understood; the last does not use the surrounding environment: it is NAME as set before, or
    the default. A variable set to the empty string is unset, as for the trainer. BadInput, with the
    line number, for lines that hold anything else and for misspelt ``EMB_`` names.
    """
    found: dict[str, str] = {}
    for number, line in _lines(text):
        try:
            words = [word for word in shlex.split(line, comments=True) if word != "export"]
        except ValueError as error:
            raise BadInput(f"line {number}: not a shell assignment ({error})") from None
        for word in words:
            name, equals, value = word.partition("=")
            if not equals or not name.isidentifier():
                raise BadInput(f"line {number}: found {word!r}; allowed: NAME=value")
            if name.startswith("EMB_"):
                one_of(name, PLACING, f"line {number}")
            found[name] = _DEFAULT.sub(lambda m: found.get(m[1]) or m[2] or "", value)
    return {name: value for name, value in found.items() if value.strip()}


def _priced_for(plan: Plan) -> dict[str, str]:
    """The workload and the smallest rank, as far as variables express them."""
    work = plan.model.workload
    found = {BATCH: str(work.batch_per_rank)}
    backward = work.exchange_dtype_backward or work.exchange_dtype
    for name, dtype in ((FORWARD, work.exchange_dtype), (BACKWARD, backward)):
        if dtype in WIRE:
            found[name] = dtype
    if work.codec_peak_factor is None and not _plain(work):
        found[CODEC] = {codec: flag for flag, codec in _CODECS.items()}[work.codec]
    found[DEDUP] = str(int(work.dedup))
    whole = min(rank.hbm_bytes for rank in plan.cluster.ranks) // 2**30
    return {**found, HBM: str(whole)} if whole else found


def _placement(placed: PlacedTable) -> str:
    where = f"table {placed.name!r}"
    if placed.kind == "dynamicemb":
        raise BadInput(f"{where} is of dynamicemb; DLRMv4's variables place TorchRec tables only")
    if placed.sharding_type not in _TYPES:
        raise BadInput(f"{where} is {placed.sharding_type}; DLRMv4 allows: {', '.join(_TYPES)}")
    return str(one_of(placed.mode, _PLACEMENTS, f"{where}: mode"))


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


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines, each with the number of its first physical line."""
    held, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        first = first or number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        yield first, held + line
        held, first = "", 0
    if held:
        yield first, held


def _whole(variables: Mapping[str, str], name: str) -> int:
    text = variables[name].strip()
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**31:
        raise BadInput(f"{name}: found {text!r}; allowed: a whole number from 1")
    return int(text)
