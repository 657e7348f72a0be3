"""Options summed up at once, if all ranks are alike, against rows built shard by shard."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from formulations.instance import Instance
from formulations.proof.build import _Builder
from formulations.proof.rows import Rows
from tests.formulations.strategies import instances


@given(instance=instances())
def test_all_options_at_once_put_the_same_into_rows(instance: Instance) -> None:
    """Possible options, what each puts into which row, and the capacities."""
    builder = _Builder(instance, apart=False)
    if not builder.uniform:
        return
    once, slowly = builder.alike(), builder.build()
    assert once.possible.tolist() == slowly.possible.tolist()
    assert once.capacity.tolist() == slowly.capacity.tolist()
    assert not slowly.possible[slowly.slot_option].any()
    for option in np.flatnonzero(once.possible):
        assert _amounts(once, option) == _amounts(slowly, option)


def _amounts(rows: Rows, choice: int) -> dict[int, int]:
    part = slice(int(rows.start[choice]), int(rows.start[choice + 1]))
    pairs = zip(rows.row[part].tolist(), rows.amount[part].tolist(), strict=True)
    return {row: amount for row, amount in pairs if amount}
