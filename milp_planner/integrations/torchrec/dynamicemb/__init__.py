"""dynamicemb tables inside TorchRec's planner, chosen together with the ordinary ones.

Neither dynamicemb nor TorchEasyRec is imported: what is relied upon of them is written down in
:mod:`~milp_planner.integrations.torchrec.dynamicemb.marks`.

- ``DynamicEmbEnumerator`` adds the options of dynamicemb tables (mode × cache ratio, row-wise over
  all ranks) to TorchRec's for the others, where dynamicemb is used without TorchEasyRec.
- TorchEasyRec's own enumerator yields such options itself; give it to ``MilpShardingPlanner``.
- ``decisions`` and ``with_dynamicemb`` say what was chosen in the words of the runtime.
"""

from milp_planner.integrations.torchrec.dynamicemb.enumerator import (
    Decision,
    DynamicEmbEnumerator,
    decisions,
    torcheasyrec_efficiency,
    with_dynamicemb,
    write_options,
)

__all__ = [
    "Decision",
    "DynamicEmbEnumerator",
    "decisions",
    "torcheasyrec_efficiency",
    "with_dynamicemb",
    "write_options",
]
