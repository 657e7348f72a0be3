"""Let Meta's Rebalancer place the shards of a plan's options, and judge its placement."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from formulations import Instance, Outcome, Placement, check
from formulations.result.outcome_file import outcome_to_dict

PEER = Path(__file__).resolve().parent / "peer.py"


def placed(path: Path, instance: Instance, plan: Outcome, command: list[str]) -> dict[str, Any]:
    """Run the peer on the options of a plan.

    Parameters
    ----------
    path
        The instance's file.
    plan
        The plan whose options, never its ranks, the peer is given.
    command
        A Python that has Rebalancer, and options of ``peer.py``.

    Returns
    -------
    dict
        ``objective`` (None where ``check`` refuses the placement, or there is none), ``seconds``
        and ``note``, the reason.

    Raises
    ------
    RuntimeError
        The peer did not run to its end: no answer of Rebalancer's, and nothing to store.
    """
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder) / "plan.json", Path(folder) / "placed.json"
        given.write_text(json.dumps(outcome_to_dict(instance, plan)))
        script = [command[0], str(PEER), str(path), str(given), str(answer)]
        done = subprocess.run([*script, *command[1:]], capture_output=True, text=True)
        if "Traceback" in done.stderr:
            raise RuntimeError(f"{PEER.name} failed on {path.name}:\n{done.stderr.strip()}")
        found = json.loads(answer.read_text()) if done.returncode == 0 else None
    if found is None:
        note = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        return {"objective": None, "seconds": None, "note": note}
    verdict = check(instance, _placement(instance, found["tables"]))
    return {
        "objective": verdict.objectives["busiest_rank"] if verdict.feasible else None,
        "seconds": found["seconds"],
        "note": verdict.violations[0] if verdict.violations else "",
    }


def _placement(instance: Instance, tables: dict[str, Any]) -> Placement:
    """The Placement in a document's ``tables``."""
    chosen = [tables[name] for name in instance.table_names]
    options = [instance.option_index(t, entry["option"]) for t, entry in enumerate(chosen)]
    ranks = [[np.asarray(b, dtype=np.int64) for b in entry["ranks"]] for entry in chosen]
    return Placement(np.asarray(options, dtype=np.int64), ranks)
