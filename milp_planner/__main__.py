"""Console entry point: Ctrl-C while the program is imported ends in one line, not a traceback.

Before Python runs its first line, it alone can answer Ctrl-C.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # signal itself takes milliseconds
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def main() -> None:
    """Listen for Ctrl-C, then load and run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _on_interrupt)
    from milp_planner.cli.main import main as run

    run()


def _on_interrupt(_number: int, frame: FrameType | None) -> None:
    """Leave at once out of an import (extension modules swallow the exception), else raise it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, b"milp-planner: interrupted\n")
            os._exit(130)
        frame = frame.f_back
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
