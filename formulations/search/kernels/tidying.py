"""Preferences between plans of equal objective: every table takes the best state it can."""

from __future__ import annotations

from formulations.search.anneal_data import (
    HOME,
    RANKS,
    TABLES,
)
from formulations.search.kernels.compiled import entry, kernel
from formulations.search.kernels.fusion import at_level, change_level, conflicts, option_count
from formulations.search.kernels.loads import value_of
from formulations.search.kernels.places import place_table
from formulations.search.kernels.tables import is_away, keep_and_lift, put_table, undo
from formulations.search.kernels.targets import aim_here
from formulations.search.kernels.views import group_of, home_of, old_option_of, option_of
from formulations.search.numbers import BROKEN


@kernel
def _takes(a, w, table, option, home, most):
    """Give a table an option if the objective stays at most ``most`` and no capacity is exceeded;
    returns whether it did."""
    keep_and_lift(a, w, table)
    aim_here(a)
    if home:
        change = put_table(a, w, table, option, a[HOME])
    else:
        change = place_table(a, w, table, option, a[RANKS])
    if change < BROKEN and value_of(a) <= most:
        return True
    undo(a, w, table)
    return False


@kernel
def _preference(a, table, preferences):
    """The preference of a table's state; the lowest is the best."""
    option = option_of(a, table)
    home = home_of(a, table) == option and not is_away(a, table)
    return preferences[option + option_count(a)] if home else preferences[option]


@kernel
def _take_together(a, w, choice_start, choice, preferences, like, most):
    """Move all tables of a fusion group to the level of an option if their preferences improve and
    none gets worse; returns whether it did."""
    group, before = group_of(a, like), 0
    for t in range(a[TABLES]):
        if group_of(a, option_of(a, t)) == group:
            if at_level(a, t, choice_start, choice, like) < 0:
                return False
            before += _preference(a, t, preferences)
    aim_here(a)
    change = change_level(a, w, choice_start, choice, like, 1e300, a[RANKS])
    after = worse = 0
    for t in range(a[TABLES]):
        if group_of(a, option_of(a, t)) == group:
            old = old_option_of(a, t)
            old += option_count(a) if home_of(a, t) == old else 0
            after += _preference(a, t, preferences)
            worse += _preference(a, t, preferences) > preferences[old]
    if change < BROKEN and after < before and worse == 0 and value_of(a) <= most:
        return True
    for t in range(a[TABLES]):
        if group_of(a, option_of(a, t)) == group:
            undo(a, w, t)
    return False


@kernel
def _changed_level(a, w, table, choice_start, choice, preferences, most):
    """Move a table's fusion group to another level, for an option that the table prefers; returns
    whether it did."""
    own = option_of(a, table)
    for i in range(choice_start[table], choice_start[table + 1]):
        like = choice[i]
        if like >= option_count(a) or group_of(a, like) != group_of(a, own):
            continue
        better = preferences[like] < _preference(a, table, preferences) and conflicts(a, like, own)
        if better and _take_together(a, w, choice_start, choice, preferences, like, most):
            return True
    return False


@kernel
def _improved(a, w, table, choice_start, choice, preferences, most):
    """Give a table the best state it can have, if it prefers that to its own; returns whether it
    did."""
    options, own = option_count(a), _preference(a, table, preferences)
    for i in range(choice_start[table], choice_start[table + 1]):
        if preferences[choice[i]] >= own:
            return False
        option, home = choice[i] % options, choice[i] // options
        free = not conflicts(a, option, option_of(a, table))
        if free and _takes(a, w, table, option, home, most):
            return True
    return False


@kernel
def _tidy(a, w, order, count, choice_start, choice, preferences, most):
    changed = 0
    for n in range(count):
        table = order[n]
        changed += _improved(a, w, table, choice_start, choice, preferences, most)
        if group_of(a, option_of(a, table)) >= 0:
            changed += _changed_level(a, w, table, choice_start, choice, preferences, most)
    return changed


@entry
def tidy(a, w, order, choice_start, choice, preferences, most):
    """Give one table after another the best state that keeps the objective at most ``most`` and
    exceeds no capacity; fusion groups change their level together. Returns how often it did.

    Parameters
    ----------
    choice_start, choice : int64 arrays
        States of every table, the most preferred first: options placed anywhere, and option +
        number of options for the option in production at its places there.
    preferences : int64 array
        Preference of every such state; the lowest is the best.
    """
    return _tidy(
        a.ctypes, w.ctypes, order.ctypes, len(order), choice_start.ctypes, choice.ctypes,
        preferences.ctypes, most,
    )  # fmt: skip
