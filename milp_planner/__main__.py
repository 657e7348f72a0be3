"""Console entry point: Ctrl-C while Python still imports ends in one line, not a traceback."""

from __future__ import annotations

import os
import signal
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
