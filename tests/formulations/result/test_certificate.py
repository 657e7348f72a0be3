"""The certificate's outline: what is read, and what is refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from formulations.errors import InstanceError
from formulations.result.certificate import certificate_from_dict

GOOD: dict[str, Any] = {"version": 3, "kind": "bound", "target": 1, "vectors": [], "nodes": [{}]}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"version": 1}, "of version 1, which an earlier release wrote; solve again"),
        ({"version": 2}, "of version 2, which an earlier release wrote; solve again"),
        ({"version": 4}, "version 4"),
        ({"kind": "optimal"}, "kind 'optimal'"),
        ({"kind": "infeasible"}, "has the keys"),
        ({"children": []}, "has the keys"),
        ({"target": 1.0}, "target of a certificate must be an integer"),
        ({"target": True}, "target of a certificate must be an integer"),
        ({"nodes": [[]]}, "'nodes' of a certificate must be a list of objects"),
        ({"vectors": {}}, "'vectors' of a certificate must be a list"),
        ({"vectors": [{}]}, "a vector of a certificate must be a list of objects"),
    ],
)
def test_another_outline_is_refused(changes: dict[str, Any], sentence: str) -> None:
    """Versions 1 and 2 are refused with advice, other faults with what is allowed."""
    assert certificate_from_dict(GOOD).target == 1
    with pytest.raises(InstanceError, match=sentence):
        certificate_from_dict({**GOOD, **changes}, "plan.json")
