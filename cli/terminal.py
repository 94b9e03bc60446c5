"""Where words for people are printed, and how they are made safe and short."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

_TAIL_LINES = 5
_TAIL_WIDTH = 500  # the end of a traceback says most
_WIDE = 200  # in a file or a pipe nobody needs eighty columns


class CliError(Exception):
    """What went wrong, in a sentence, and what a person can do about it."""

    def __init__(self, sentence: str, *, mend: str = "", tail: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.mend = mend
        self.tail = tail  # last lines of a log, where only they tell the reason


def complain(error: CliError) -> None:
    """Say the error on one line; a terminal bleeds no traceback."""
    line = Text("vlog: ", style="bold red")
    line.append(printable(error.sentence), style="not bold default")
    if error.mend:
        line.append(f" → {printable(error.mend)}", style="not bold cyan")
    err.print(line, soft_wrap=True)
    for said in error.tail.splitlines()[-_TAIL_LINES:]:
        err.print(Text(f"      {printable(said)[-_TAIL_WIDTH:]}", style="dim"), soft_wrap=True)


def say(text: str, *, style: str = "") -> None:
    """Print one line as it is: no markup is read in it and an address is never folded."""
    out.print(Text(text, style=style), soft_wrap=True)


def printable(text: str) -> str:
    """Keep what a stranger wrote from steering the terminal."""
    return "".join(c if c.isprintable() else " " for c in text).strip()


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[str] = ()) -> None:
    table = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", no_wrap=column != "title")
    for row in rows:
        table.add_row(*[cell if isinstance(cell, Text) else Text(printable(str(cell))) for cell in row])
    # A console takes no table wider than itself, and one that is no terminal thinks it has eighty columns.
    console = out if out.is_terminal else Console(file=out.file, width=_WIDE, highlight=False)
    console.print(table)


def bytes_text(size: int) -> str:
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def seconds_text(seconds: float | None) -> str:
    """Write a duration as a player would: 0:20, 1:02:03."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
