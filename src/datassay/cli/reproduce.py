"""``datassay reproduce``: published tables, done again."""

import os
from pathlib import Path
from typing import Annotated

import typer

from datassay._errors import InputError
from datassay.cli.options import draw


def reproduce(
    name: Annotated[str | None, typer.Argument(help="What to reproduce; without it, list what there is.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with the Parquet files; DATASSAY_DATA if left out.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw it, where there is a figure: .svg, .png or .pdf.")] = None,
) -> None:
    """Redo a published table and put our numbers beside the published ones.

    Exit status 1 means that they do not agree.

    Examples:
      datassay reproduce

      datassay reproduce tknn-detection --data path/to/folder
    """
    from rich.console import Console
    from rich.table import Table

    from datassay.data import FOLDER_VARIABLE
    from datassay.evaluate import list_reproductions
    from datassay.evaluate import reproduce as redo
    from datassay.results import check_figure

    if figure is not None:
        check_figure(figure)
    console = Console()
    if name is None:
        listing = Table("name", "what it redoes", box=None)
        for key, title in list_reproductions().items():
            listing.add_row(key, title)
        console.print(listing)
        return
    if data is not None:
        if not data.is_dir():
            raise InputError(f"--data {str(data)!r} is not a folder")
        os.environ[FOLDER_VARIABLE] = str(data)
    result = redo(name)
    table = Table(title=result.title, title_justify="left")
    compared = any(cell.published is not None for cell in result.cells)
    for heading in ("", "", *(("published",) if compared else ()), "ours", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for cell in result.cells:
        spread = "" if cell.spread is None else f" ± {cell.spread:.3f}"
        published = () if not compared else ("" if cell.published is None else f"{cell.published:.3f}{spread}",)
        mark = "" if cell.published is None or not cell.judged else ("agrees" if cell.agrees() else "differs")
        table.add_row(cell.row, cell.column, *published, f"{cell.ours:.4g}", mark)
    console.print(table)
    console.print(f"{result.finding}.")
    if figure is not None and result.draw is None:
        console.print(f"There is no figure of {name}; nothing was drawn.")
    elif figure is not None and result.draw is not None:
        draw(result.draw, figure)
        console.print(f"Written: {figure}")
    if not result.holds:
        raise typer.Exit(1)
