"""Integers as people read them: bytes as GiB, picoseconds as ms, gaps as percent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_BYTE_UNITS = (("PiB", 2**50), ("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_TIME_UNITS = (("s", 10**12), ("ms", 10**9), ("µs", 10**6), ("ns", 10**3), ("ps", 1))
UNKNOWN = "–"


def show_bytes(amount: int | None) -> str:
    """Bytes in the largest binary unit that leaves at least 1, with three digits."""
    if amount is None:
        return UNKNOWN
    for unit, size in _BYTE_UNITS:
        if abs(amount) >= size:
            return f"{_digits(amount / size)} {unit}"
    return f"{amount} B"


def show_amount(amount: int | None, unit: str) -> str:
    """Bytes if the instance's time unit is ``ps``; otherwise a plain integer.

    Instances from the literature have resources without a unit.
    """
    if unit == "ps" or amount is None:
        return show_bytes(amount)
    return f"{amount:,}"


def memory_name(resource: str) -> str:
    """The memory that a resource limits: ``hbm@MOMENT``, ``hbm:COLLECTIVE`` limit the HBM."""
    return resource.partition("@")[0].partition(":")[0]


def time_unit(values: Iterable[int | None]) -> tuple[str, int]:
    """The unit, with its picoseconds, that suits the largest of some times."""
    largest = max((abs(v) for v in values if v is not None), default=0)
    return next(((name, size) for name, size in _TIME_UNITS if largest >= size), _TIME_UNITS[-1])


def show_time(picoseconds: int | None, unit: tuple[str, int] | None = None, digits: int = 4) -> str:
    """A time in picoseconds with its unit; ``unit`` fixes that for a column."""
    if picoseconds is None:
        return UNKNOWN
    name, size = unit or time_unit([picoseconds])
    return f"{picoseconds / size:.{digits}g} {name}" if size > 1 else f"{picoseconds} {name}"


def show_cost(value: int | None, unit: str, digits: int = 4) -> str:
    """An objective: a time if the instance's unit is ``ps``, else the plain integer."""
    if value is None:
        return UNKNOWN
    return show_time(value, digits=digits) if unit == "ps" else f"{value:,}"


def show_gap(gap: float | None) -> str:
    """A relative gap as percent; 0 and 100% only when it is exactly that."""
    if gap is None:
        return UNKNOWN
    if gap == 0:
        return "0"
    return f"{100 * gap:.2g}%" if abs(gap) < 0.0995 else show_percent(gap)


def show_percent(value: float) -> str:
    """A ratio in whole percent, with as many decimals as keep it off 0% and 100%."""
    decimals = 0
    while abs(float(f"{value:.{decimals}%}"[:-1])) in (0, 100) and abs(value) not in (0, 1):
        decimals += 1
    return f"{value:.{decimals}%}"


def show_seconds(seconds: float) -> str:
    """Wall clock with a sensible number of digits."""
    return f"{seconds:.0f} s" if seconds >= 100 else f"{seconds:.3g} s"


def show_share(used: int, capacity: int) -> str:
    """Use as percent of a capacity; if that is 0, a dash (or ``over`` if anything is used)."""
    if capacity == 0:
        return "over" if used else UNKNOWN
    if used == capacity:
        return "100%"
    percent = 100 * used / capacity
    text = f"{percent:.1f}%"
    if text == "100.0%":
        return "<100%" if used < capacity else ">100%"
    return text


def show_ranks(ranks: Sequence[int], num_ranks: int) -> str:
    """Ranks in runs: ``all 8``, ``3``, ``0-3,6``; repeated ones as ``2×2``."""
    if not ranks:
        return UNKNOWN
    counts = {rank: list(ranks).count(rank) for rank in sorted(set(ranks))}
    if len(counts) == num_ranks and num_ranks > 1 and set(counts.values()) == {1}:
        return f"all {num_ranks}"
    parts: list[str] = []
    for first, last, times in _runs(counts):
        span = str(first) if first == last else f"{first}-{last}"
        parts.append(span if times == 1 else f"{span}×{times}")
    return ",".join(parts)


def show_axis(name: str, value: object) -> str:
    """A value of a swept axis: sizes as bytes, growth in percent."""
    if name in ("hbm", "ddr") and isinstance(value, int):
        return show_bytes(value)
    return f"{value}%" if name == "growth" else str(value)


NAMED = 3
"""Tables that a sentence names."""


def listed(names: Sequence[str], most: int) -> str:
    """Names with commas: at most ``most``, then the number of further ones."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


MOST_OF_A_RESTRICTION = 300
"""Characters shown of text that may name any number of tables; ``--json`` has all of it."""


def shorten(text: str, width: int) -> str:
    """Cut to a width with an ellipsis in the middle, keeping both ends."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 3
    return text[: width - 1 - tail] + "…" + text[len(text) - tail :]


def shorten_all(texts: Sequence[str], width: int) -> list[str]:
    """Cut each to a width, keeping different texts different as far as the width allows.

    Texts that would look alike with both ends kept show the part after their common beginning or,
    if that looks alike too, their ends.
    """
    cut = [shorten(text, width) for text in texts]
    alike: dict[str, set[str]] = {}
    for text, short in zip(texts, cut, strict=True):
        alike.setdefault(short, set()).add(text)
    for short, group in alike.items():
        if len(group) > 1:
            pairs = enumerate(zip(*group, strict=False))
            start = next((i for i, letters in pairs if len(set(letters)) > 1), 0)
            found = {text: _from(text, start, width) for text in group}
            if len(set(found.values())) < len(group):
                found = {text: "…" + text[len(text) - width + 1 :] for text in group}
            cut = [
                found[text] if now == short else now for text, now in zip(texts, cut, strict=True)
            ]
    return cut


def wrapped(text: str, width: int) -> str:
    """Lines of at most a width, broken after blanks and ``/ , :``, long words also after ``_``."""
    words = re.findall(r"[^\s/,:]*(?:[/,:]|\s+|$)", text)
    lines = [""]
    for word in words:
        for part in [word] if len(word.rstrip()) <= width else re.findall("[^_]*(?:_|$)", word):
            if len((lines[-1] + part).rstrip()) > width and lines[-1]:
                lines.append("")
            lines[-1] += part
            while len(lines[-1].rstrip()) > width:
                lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(line.rstrip() for line in lines)


def _from(text: str, start: int, width: int) -> str:
    """As much text as fits around a position, with the position visible."""
    first = max(0, min(start - 2, len(text) - width + 1))
    return shorten("…" + text[first:], width)


def _runs(counts: dict[int, int]) -> list[tuple[int, int, int]]:
    """Maximal runs of consecutive ranks that occur equally often."""
    runs: list[tuple[int, int, int]] = []
    for rank, times in counts.items():
        if runs and runs[-1][1] == rank - 1 and runs[-1][2] == times:
            runs[-1] = (runs[-1][0], rank, times)
        else:
            runs.append((rank, rank, times))
    return runs


def _digits(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def show_rate(rate: float) -> str:
    """Samples per second, in thousands or millions."""
    for size, letter in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if rate >= size:
            return f"{rate / size:.4g}{letter}"
    return f"{rate:.4g}"
