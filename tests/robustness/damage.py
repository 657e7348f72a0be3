"""Damage to input files: seeded, cheap, and marked where the result must be refused."""

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CORPUS = Path(__file__).parent / "corpus"

#: Values no field, or hardly any, should take.
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 2**31, 2**53 - 1, 2**53, 2**63, 10**400, 0.5, -0.0, 1e308, "",
    " ", "0", "-1", "1e6", "80GiB", "80 gib", "1/0", "1/3", "100%", "unknown", "rank", "t", "\x00",
    "é", "a" * 300, [], {}, [[]], [None], {"": 0}, {"kind": "zipf"}, [0, 0], [1.5], "tenths",
    "9" * 50,
)  # fmt: skip
#: Text that matters to YAML and JSON readers.
TOKENS = (
    "&a ", "*a", "!!python/object:os.system ", "<<: ", "- ", ": ", "{", "}", "[", "]", ",", "#",
    "|", ">", "'", '"', "\t", "\n", "\r\n", "---\n", "...\n", "? ", "%YAML 1.1\n", "\\u0000", "~",
    ".inf", ".nan", "NaN", "1e999", "0x1F", "0o17", "012", "1:30", "yes", "2001-01-01", "\u2028",
    "\ufeff", "\u00a0", "[" * 3000, "{a: " * 500, "- " * 600, "é", "9" * 5000,
)  # fmt: skip

Document = dict[str, Any]


def corpus(kind: str) -> list[Path]:
    """Files of one kind (``model``, ``cluster``, ``instance``) to start from; all are valid."""
    return sorted((CORPUS / kind).iterdir())


def plain(path: Path) -> Document:
    """A corpus file as plain values, read by a reader that is not the project's."""
    document = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(document, dict)
    return document


def damaged(seed: int, raw: bytes, document: Document) -> tuple[bytes, bool]:
    """Damage a file once to four times.

    Parameters
    ----------
    seed : int
        Decides everything.
    raw : bytes
        The file.
    document : dict
        Its plain values.

    Returns
    -------
    tuple of (bytes, bool)
        The new file, and whether it is certainly wrong.
    """
    draw = random.Random(seed)
    if draw.random() < 0.6:
        return _by_structure(draw, document)
    return _by_text(draw, raw), False


def damaged_text(seed: int, raw: bytes) -> bytes:
    """Damage a file of any kind once to four times, as bytes and lines."""
    return _by_text(random.Random(seed), raw)


def _by_text(draw: random.Random, raw: bytes) -> bytes:
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        raw = draw.choice(_TEXT)(draw, raw)
    return raw


def _by_structure(draw: random.Random, document: Document) -> tuple[bytes, bool]:
    """Change the values; written as JSON, which is YAML too."""
    new = copy.deepcopy(document)
    wrong = False
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        draw.choice(_STRUCTURE)(draw, new)
    last = draw.random()
    if last < 0.03 and new:
        return _twice(draw, new), True
    if last < 0.15:
        _unknown_field(draw, new)
        wrong = True
    return json.dumps(new, ensure_ascii=draw.random() < 0.5).encode("utf-8", "replace"), wrong


def _twice(draw: random.Random, document: Document) -> bytes:
    """One top-level key written twice: no reader may pick one of them."""
    key = draw.choice(sorted(document))
    again = json.dumps({key: document[key]})[1:-1]
    return (json.dumps(document)[:-1] + ", " + again + "}").encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value inside."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from _places(inner)


def _any_place(draw: random.Random, document: Document) -> tuple[Any, Any] | None:
    places = list(_places(document))
    return draw.choice(places) if places else None


def _replace(draw: random.Random, document: Document) -> None:
    place = _any_place(draw, document)
    if place is not None:
        place[0][place[1]] = copy.deepcopy(draw.choice(ODD))


def _nudge(draw: random.Random, document: Document) -> None:
    """A number a little or much larger or smaller: often still valid."""
    numbers = [(c, k) for c, k in _places(document) if type(c[k]) in (int, float)]
    if numbers:
        container, key = draw.choice(numbers)
        value = container[key]
        third = float(min(abs(value), 1e300)) / 3
        changes = (value + 1, value - 1, 2 * value, -value, 10**6 * value, third)
        container[key] = draw.choice(changes)


def _delete(draw: random.Random, document: Document) -> None:
    place = _any_place(draw, document)
    if place is not None:
        del place[0][place[1]]


def _repeat(draw: random.Random, document: Document) -> None:
    """An item of a list once more."""
    lists = [c[k] for c, k in _places(document) if isinstance(c[k], list) and c[k]]
    if lists:
        chosen = draw.choice(lists)
        chosen.insert(draw.randrange(len(chosen) + 1), copy.deepcopy(draw.choice(chosen)))


def _move(draw: random.Random, document: Document) -> None:
    """A value from one place of the document at another."""
    one, other = _any_place(draw, document), _any_place(draw, document)
    if one is not None and other is not None:
        other[0][other[1]] = copy.deepcopy(one[0][one[1]])


def _unknown_field(draw: random.Random, document: Document) -> None:
    """A field nobody knows: always wrong at the top."""
    document[draw.choice(("zzz", "Name", "nmae", "tabels", "hbm_gb", "x-extra"))] = draw.choice(ODD)


def _insert(draw: random.Random, raw: bytes) -> bytes:
    at = draw.randrange(len(raw) + 1)
    return raw[:at] + draw.choice(TOKENS).encode() + raw[at:]


def _cut(draw: random.Random, raw: bytes) -> bytes:
    at = draw.randrange(len(raw) + 1)
    return raw[:at] + raw[at + draw.choice((1, 2, 5, 20, 10**6)) :]


def _flip(draw: random.Random, raw: bytes) -> bytes:
    if not raw:
        return raw
    at = draw.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ (1 << draw.randrange(8))]) + raw[at + 1 :]


def _shuffle_lines(draw: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def _repeat_line(draw: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    lines.insert(draw.randrange(len(lines)), draw.choice(lines))
    return b"\n".join(lines)


def _indent(draw: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    at = draw.randrange(len(lines))
    lines[at] = draw.choice((b" ", b"  ", b"\t")) + lines[at]
    return b"\n".join(lines)


_STRUCTURE = (_replace, _replace, _nudge, _nudge, _delete, _repeat, _move)
_TEXT = (_insert, _insert, _cut, _flip, _shuffle_lines, _repeat_line, _indent)
