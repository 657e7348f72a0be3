"""A small Python module that makes TorchRec's own planner place tables as a plan has them.

``EmbeddingShardingPlanner`` hands its winning options to ``callbacks`` after its partitioner. Ranks
set there are used as they are, with no check of memory, which the module therefore makes itself.
What it holds is the document of the format torchrec.

References
----------
TorchRec 1.9.2, ``distributed/planner/planners.py`` (``callbacks``, ``to_sharding_plan``).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.files import json_text
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.model import Model
from milp_planner.integrations.exports import torchrec
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import Plan

_SOURCE = Path(__file__).with_name("callback_module.py")
_PLAN = re.compile(r'json\.loads\(r"""(.*?)"""\)', re.DOTALL)


def document(plan: Plan) -> dict[str, Any]:
    """The torchrec document, with what the module checks: shapes, and bytes of every rank.

    BadInput for tables in a key-value store.
    """
    found = torchrec.document(plan)
    rows = [0] * plan.cluster.num_ranks
    for name, entry in found["plan"].get("", {}).items():
        table, placed = plan.model.table(name), plan.table(name)
        if "key_value_params" in entry:
            raise BadInput(f"table {name!r} is in a key-value store; use the format torchrec")
        entry["shape"] = [table.rows, table.dim]
        for shard in plan.shards(name):
            assert shard.rows is not None, "TorchRec tables have contiguous rows"
            cells = (shard.rows[1] - shard.rows[0]) * (shard.columns[1] - shard.columns[0])
            rows[shard.rank] += int(cells * table.element_bytes * float(placed.cache_ratio))
    return {**found, "rows_in_hbm": rows, "hbm": _fullest(plan)}


def _fullest(plan: Plan) -> int:
    """Bytes in use on the fullest rank at the fullest moment; 0 if this is not known."""
    ledger = ledger_of(plan)
    return max((place.used for place in ledger.hbm), default=0) if ledger is not None else 0


def write(plan: Plan) -> str:
    """The module's source."""
    text = json_text(document(plan))
    return _PLAN.sub(lambda _: f'json.loads(r"""{text}""")', _SOURCE.read_text("utf-8"), count=1)


def notes(plan: Plan) -> list[str]:
    """Sentences about how it is used."""
    where = "EmbeddingShardingPlanner(…, callbacks=[place])"
    return [f"one line in the trainer makes it run exactly: {where}", *torchrec.notes(plan)]


def read(text: str, model: Model) -> dict[str, PinSpec]:
    """Pins that such a module fixes; BadInput for any other text."""
    match = _PLAN.search(text)
    if match is None:
        raise BadInput("not a module that export --to torchrec-callback wrote")
    try:
        json.loads(match[1])
    except ValueError as error:
        raise BadInput(f"the plan in the module is damaged: {error}") from None
    return torchrec.read(match[1], model)
