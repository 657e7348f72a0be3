"""What DLRMv4's environment says beside placements: batch, exchange, codec, memory.

References
----------
mlcommons/training, recommendation_v4, ``train/gin/yambda_5b.gin``: ``BATCH_SIZE``,
``SPARSE_A2A_FWD``, ``SPARSE_A2A_BWD``, ``QCOMM_LOWMEM_CODEC``, ``EC_INDEX_DEDUP``,
``HBM_CAP_GB`` (which counts in GiB).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs.model import Model, Workload
from milp_planner.integrations.exports.pins import one_of
from milp_planner.plans.placement import Plan

BATCH, FORWARD, BACKWARD = "BATCH_SIZE", "SPARSE_A2A_FWD", "SPARSE_A2A_BWD"
CODEC, DEDUP, HBM = "QCOMM_LOWMEM_CODEC", "EC_INDEX_DEDUP", "HBM_CAP_GB"
VARIABLES = (BATCH, FORWARD, BACKWARD, CODEC, DEDUP, HBM)

WIRE = ("fp32", "bf16", "fp16")
STOCK_CODEC, LOW_MEMORY_CODEC, NO_CODEC = 2.5, 1.5, 1.0
"""Peak over input: full fp32 temporary for the clamp; cast first; nothing to encode."""
_PEAKS = {"0": STOCK_CODEC, "1": LOW_MEMORY_CODEC}
_FLAGS = {"0": False, "1": True}
_DEFAULT = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}")


def assignments(text: str, placing: tuple[str, ...]) -> dict[str, str]:
    """Variables that sourcing a text would set; those in ``EMB_`` must be among ``placing``.

    Comments, several assignments a line, lines continued by a backslash, and ``${NAME:-default}``
    are understood; the last needs no surrounding environment: NAME as set before, else the default.
    A variable set to nothing is unset, as for the trainer.

    Raises
    ------
    BadInput
        For lines that hold anything else, and misspelt ``EMB_`` names, with their number.
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
                one_of(name, placing, f"line {number}")
            found[name] = _DEFAULT.sub(lambda m: found.get(m[1]) or m[2] or "", value)
    return {name: value for name, value in found.items() if value.strip()}


def workload_of(variables: Mapping[str, str], model: Model) -> dict[str, Any]:
    """Fields of the model's workload that the environment sets; unset ones stay the model's.

    Raises
    ------
    BadInput
        For values that the trainer does not have.
    """
    changes: dict[str, Any] = {}
    if BATCH in variables:
        changes["batch_per_rank"] = _whole(variables, BATCH)
    for name, field in ((FORWARD, "exchange_dtype"), (BACKWARD, "exchange_dtype_backward")):
        if name in variables:
            changes[field] = one_of(variables[name].strip().lower(), WIRE, name)
    if DEDUP in variables:
        changes["dedup"] = _FLAGS[_flag(variables, DEDUP)]
    if CODEC in variables:
        changes["codec_peak_factor"] = _PEAKS[_flag(variables, CODEC)]
    after = model.workload.model_copy(update=changes)
    if ({FORWARD, BACKWARD, CODEC} & set(variables)) and _plain(after):
        changes["codec_peak_factor"] = NO_CODEC
    return changes


def unread(variables: Mapping[str, str], read: tuple[str, ...]) -> list[str]:
    """Sentences about what the environment says and a model does not hold."""
    said = []
    if HBM in variables:
        cap = _whole(variables, HBM)
        said.append(
            f"{HBM}={cap} is the cluster's, not the model's: plan on one whose ranks have "
            f"hbm: {cap}GiB"
        )
    others = [name for name in variables if name not in (*read, *VARIABLES)]
    if others:
        said.append(f"not read: {', '.join(others)}")
    return said


def environment(plan: Plan) -> dict[str, str]:
    """The variables under which the trainer runs as the plan was priced."""
    workload = plan.model.workload
    found = {BATCH: str(workload.batch_per_rank)}
    backward = workload.exchange_dtype_backward or workload.exchange_dtype
    for name, dtype in ((FORWARD, workload.exchange_dtype), (BACKWARD, backward)):
        if dtype in WIRE:
            found[name] = dtype
    codecs = {peak: flag for flag, peak in _PEAKS.items()}
    if workload.codec_peak_factor in codecs:
        found[CODEC] = codecs[workload.codec_peak_factor]
    found[DEDUP] = str(int(workload.dedup))
    whole = min(rank.hbm_bytes for rank in plan.cluster.ranks) // 2**30
    if whole:
        found[HBM] = str(whole)
    return found


def notes(plan: Plan) -> list[str]:
    """What of the plan's workload and cluster the variables do not say."""
    workload, found = plan.model.workload, environment(plan)
    free = min(plan.cluster.usable_hbm(plan.model)) / 2**30
    said = [
        f"{HBM} is before reservations; the plan keeps within {free:.1f} GiB"
        if HBM in found
        else f"{HBM} counts in whole GiB, of which a rank has none"
    ]
    if FORWARD not in found or BACKWARD not in found:
        said.append(f"the exchange in {workload.exchange_dtype} has no value there")
    if CODEC not in found and not _plain(workload):
        said.append(
            f"a codec that needs {workload.codec_peak_factor:g} times its input has no value there"
        )
    return said


def _plain(workload: Workload) -> bool:
    """Whether both ways go uncoded."""
    return workload.exchange_dtype == "fp32" and workload.exchange_dtype_backward in (None, "fp32")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first physical one."""
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


def _flag(variables: Mapping[str, str], name: str) -> str:
    text = variables[name].strip()
    if text not in _FLAGS:
        raise BadInput(f"{name}: found {text!r}; allowed: 0 or 1")
    return text
