"""Text that a terminal shows as it is: nothing in it steers the terminal, all of it can be written.

Names are refused at input where they hold control characters; error sentences quote what was
found, and notes come from solvers, so whatever is printed passes here.
"""

from __future__ import annotations

import codecs

#: Control characters, line separators and what turns the direction of text, for a regex's class.
CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
#: Name of the error handler that writes what an encoding does not have as its nearest ASCII.
NEAREST = "milp_planner_nearest"

_PICTURES = {
    **{code: 0x2400 + code for code in range(32) if code != ord("\n")},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
_ASCII = {
    **dict.fromkeys("–−—", "-"), "…": "...", "·": "*", "×": "x", "→": "->", "≤": "<=", "≥": ">=",
    "±": "+-", "²": "^2", "³": "^3", "⁹": "^9", "µ": "u", "✓": "+", "✗": "!", "│": "|", "█": "#",
    "▓": "#", "▒": "=", "░": ".", "▪": "*", "◀": "<", "é": "e", "Σ": "sum ", "σ": "sigma",
}  # fmt: skip


def printable(text: str) -> str:
    """Text with a picture for every control character but the line break (ESC becomes ␛)."""
    return text.translate(_PICTURES)


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_ASCII.get(each, "?") for each in lacking), error.end


codecs.register_error(NEAREST, _nearest)
