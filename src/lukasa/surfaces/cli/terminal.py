"""Colour and progress bars for a terminal. Imported only there: importing rich takes longer than most commands."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from lukasa.surfaces.cli.output import Lines, safe

STYLES = {"title": "bold", "good": "green", "warn": "yellow", "bad": "bold red", "dim": "dim", "": ""}


def paint(lines: Lines) -> None:
    """Print lines in colour. Square brackets in a text are not markup."""
    console = Console(highlight=False, markup=False, emoji=False)
    for spans in lines:
        console.print(Text.assemble(*((safe(span.text), STYLES[span.style]) for span in spans)), soft_wrap=True)


class Bar:
    """A progress bar on stderr, so that stdout stays clean."""

    def __init__(self, label: str, total: int | None) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(label, total=total)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._progress.stop()

    def expect(self, total: int) -> None:
        """Set how many there are, once that is known."""
        self._progress.update(self._task, total=total)

    def advance(self, by: int) -> None:
        self._progress.advance(self._task, by)
