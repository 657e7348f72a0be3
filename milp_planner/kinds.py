"""The one table of runtimes: the kinds of table, and the modules that price each of them."""

from __future__ import annotations

_RUNTIMES = "milp_planner.pricing.runtimes."
KINDS: dict[str, tuple[str, ...]] = {
    "torchrec": (_RUNTIMES + "torchrec", _RUNTIMES + "key_value"),
    "dynamicemb": (_RUNTIMES + "dynamicemb",),
}
"""Of each kind, modules with a ``RUNTIME`` (:class:`milp_planner.pricing.runtimes.room.Runtime`),
imported on first use. The first that takes a table decides how it can be cut."""
