"""Files that a command writes: refused before any work if they cannot be, and drawn."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from datassay._errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Files = Sequence[Path | None]


def refuse_inputs(written: Files, read: "Sequence[str | Path | None]") -> None:
    """Refuse to write over what is read (a file, or a data set in the folder of data sets), or twice to one place."""
    from datassay.data import dataset_file, is_many, would_be_read

    sources = [str(source) for source in read if source is not None]
    inputs = {Path(source).resolve() for source in sources}
    inputs |= {file.resolve() for source in sources if (file := dataset_file(source)) is not None}
    places: set[Path] = set()
    for path in written:
        if path is None:
            continue
        for source in sources:
            if is_many(source) and would_be_read(path, source):
                raise UsageError(f"{path} would become a part of {source!r}, which is read; write it elsewhere")
        if path.resolve() in inputs:
            raise UsageError(f"{path} is an input; writing there would overwrite your data")
        if path.resolve() in places:
            raise UsageError(f"{path} is named twice; every file to write needs a name of its own")
        places.add(path.resolve())


def check_written(
    read: "Sequence[str | Path | None]", tables: Files = (), figures: Files = (), also: Files = ()
) -> None:
    """Refuse, before any work, what could not be written, would overwrite what is read, or is named twice."""
    from datassay import results

    for table in tables:
        if table is not None:
            results.check_output(table)
    for figure in figures:
        if figure is not None:
            results.check_figure(figure)
    refuse_inputs([*tables, *figures, *also], read)


def draw(plot: "Callable[[Axes], Axes]", path: Path | None, width: float = 7, height: float = 4) -> None:
    """Let ``plot`` draw on a figure of its own (no window, no pyplot) and save it, if it is asked for."""
    if path is None:
        return
    from matplotlib.figure import Figure

    from datassay.results import save_figure

    save_figure(plot(Figure(figsize=(width, height), layout="constrained").add_subplot()), path)
