"""A profile as the YAML file that ``plan --profile`` and a cluster's ``profile:`` read."""

from __future__ import annotations

import yaml

from milp_planner.pricing.profile import Profile

_HEAD = "# Hardware profile; see docs/pricing.md for what each number prices.\n"


def profile_text(profile: Profile) -> str:
    """YAML that reads back as an equal profile."""
    data = profile.to_dict()
    return _HEAD + yaml.safe_dump(
        data, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
