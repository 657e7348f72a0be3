"""A verification as plain values, the same for terminal and JSON."""

from __future__ import annotations

from typing import Any

from formulations.result.verify import Verification


def summary(result: Verification) -> str:
    """One sentence: verified, verified except for what only a solver says, or refuted."""
    refuted = [claim.name for claim in result.claims if claim.ok is False]
    if refuted:
        return f"refuted: {', '.join(refuted)}"
    word = [claim.name for claim in result.claims if claim.ok is None]
    if word:
        return f"verified; a solver's word alone stands behind: {', '.join(word)}"
    return "verified: every claim was re-derived"


def verification_to_dict(result: Verification) -> dict[str, Any]:
    """``ok``, the sentence, and every claim with ``ok`` true, false, or null (unproven here)."""
    return {
        "ok": result.ok,
        "summary": summary(result),
        "claims": [{"name": c.name, "ok": c.ok, "text": c.text} for c in result.claims],
    }
