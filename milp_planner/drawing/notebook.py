"""What a result shows of itself in a notebook or at the prompt: what the command line prints."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType

WIDTH = 100


class Shown:
    """Base of results that know their drawing."""

    def drawing(self) -> RenderableType:
        """What the command line prints of it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return _printed(self.drawing()).export_text(clear=False).rstrip()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        form = '<pre style="line-height:normal;overflow-x:auto">{code}</pre>'
        return _printed(self.drawing()).export_html(code_format=form, inline_styles=True)


def _printed(drawing: RenderableType) -> Console:
    console = Console(file=StringIO(), width=WIDTH, record=True, force_jupyter=False)
    console.print(drawing)
    return console
