"""The limits on moves, pins and forbidden options of an instance, in words."""

from __future__ import annotations

from formulations.instance import Instance, Pin


def restrictions(instance: Instance) -> tuple[str, ...]:
    """One phrase for each kind of restriction that the instance has.

    A phrase begins with the key in the instance file and names everything that it applies to.
    Without a limit on moves, ``current`` restricts nothing.
    """
    there = f"may move, of {_count(len(instance.current), 'table')} in current"
    found = []
    if instance.max_moved_tables is not None:
        limit = _count(instance.max_moved_tables, "table")
        found.append(f"max_moved_tables: at most {limit} {there}")
    if instance.max_moved_bytes is not None:
        limit = _count(instance.max_moved_bytes, "byte")
        found.append(f"max_moved_bytes: at most {limit} {there}")
    if instance.pins:
        named = ", ".join(_pinned(instance, pin) for pin in instance.pins)
        found.append(f"pins: {len(instance.pins):,}: {named}")
    if instance.forbidden:
        named = ", ".join(_named(instance, *each) for each in instance.forbidden)
        found.append(f"forbidden: {len(instance.forbidden):,}: {named}")
    return tuple(found)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _pinned(instance: Instance, pin: Pin) -> str:
    ranks = "" if pin.ranks is None else f" on ranks {[list(block) for block in pin.ranks]}"
    return f"{_named(instance, pin.table, pin.option)}{ranks}"


def _named(instance: Instance, table: int, option: int) -> str:
    return f"{instance.table_names[table]} {instance.option_names[option]}"
