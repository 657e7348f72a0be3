"""The workload's defaults and its mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Workload
from milp_planner.inputs.constraints import TENTHS


def test_defaults() -> None:
    """Only the batch is required; the other defaults are training as the runtime does it."""
    read = Workload.from_dict({"batch_per_rank": "1k"})
    assert read.batch_per_rank == 1000
    assert read.mode == "training"
    assert read.buffers == "additive"
    assert read.storage_model == "runtime"
    assert read.fusion == "honoured"
    assert read.cache_ratios == TENTHS
    assert (read.codec, read.codec_peak_factor, read.pipeline) == ("stock", None, None)
    assert not read.dedup


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"batch_per_rank": 0}, r"batch_per_rank: found 0; allowed: at least 1"),
        ({"mode": "train"}, r"mode: found 'train'; .*did you mean training\?"),
        ({"codec_peak_factor": 0.5}, r"codec_peak_factor: found 0\.5; allowed: at least 1"),
        (
            {"exchange_dtype": "int4"},
            r"exchange_dtype: found 'int4'; allowed: fp32, fp16, bf16, fp8",
        ),
        ({"dedup": "no"}, r"dedup: found 'no'; allowed: true or false"),
        ({"fusion": "off"}, r"fusion: found 'off'; allowed: honoured, free"),
        ({"batch": 5}, r"batch: unknown field; did you mean batch_per_rank\?"),
    ],
)
def test_mistakes(fields: dict[str, Any], sentence: str) -> None:
    """Each mistake gets one sentence."""
    with pytest.raises(BadInput, match=f"^{sentence}"):
        Workload.from_dict({"batch_per_rank": 4, **fields})
