"""``datassay reproduce``: published tables, done again."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from datassay._errors import InputError, UsageError
from datassay.cli.command import Ending, Outcome, as_text, check_files, command, draw, listing, option

if TYPE_CHECKING:
    from datassay.reproduce import Reproduction
    from datassay.results import Fact


def _complete(incomplete: str) -> list[str]:
    from datassay.reproduce import list_reproductions

    return [name for name in list_reproductions() if name.startswith(incomplete)]


@command("reproduce")
def reproduce(
    name: Annotated[
        str | None, Argument(help="What to reproduce; without it, list what there is.", autocompletion=_complete)
    ] = None,
    data: Path | None = option("Folder with the Parquet files; DATASSAY_DATA if left out."),
    figure: Path | None = option("Draw it, where there is a figure: .svg, .png or .pdf."),
    *,
    ending: Ending,
) -> Outcome:
    """Redo a published table and put our numbers beside the published ones.

    Exit code 1 means that they do not agree.

    Examples:
      datassay reproduce

      datassay reproduce tknn-detection --data path/to/folder
    """
    from datassay.data import FOLDER_VARIABLE
    from datassay.reproduce import list_reproductions
    from datassay.reproduce import reproduce as redo

    check_files([], figures=[figure])
    if data is not None:
        if not data.is_dir():
            raise InputError(f"--data {str(data)!r} is not a folder")
        os.environ[FOLDER_VARIABLE] = str(data)
    if name is None:
        if figure is not None:
            raise UsageError("name what to draw, such as: datassay reproduce tknn-detection --figure f.svg")
        known = list_reproductions()
        facts: dict[str, Fact] = {"reproductions": len(known)}
        facts |= {f"title.{key}": title for key, title in known.items()}
        return Outcome(facts, [listing("name", "what it redoes", rows=list(known.items()))])
    result = redo(name)
    notes = []
    if result.draw is not None:
        draw(result.draw, figure)
    elif figure is not None:
        notes.append(f"there is no figure of {name}; nothing was drawn")
        figure = None
    said = [_beside(result), f"{result.finding}."]
    return Outcome(result.facts(), said, notes, [figure], None if result.holds else typer.Exit(1))


def _beside(result: "Reproduction") -> str:
    """Our numbers beside the published ones."""
    from rich.table import Table

    table = Table(title=result.title, title_justify="left")
    compared = any(cell.published is not None for cell in result.cells)
    for heading in ("", "", *(("published",) if compared else ()), "ours", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for cell in result.cells:
        spread = "" if cell.spread is None else f" ± {cell.spread:.3f}"
        published = () if not compared else ("" if cell.published is None else f"{cell.published:.3f}{spread}",)
        mark = "" if cell.published is None or not cell.judged else ("agrees" if cell.agrees() else "differs")
        table.add_row(cell.row, cell.column, *published, f"{cell.ours:.4g}", mark)
    return as_text(table)
