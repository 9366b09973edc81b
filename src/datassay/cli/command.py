"""How a command is put together: options in groups, a beginning and an end that all commands share.

An option is declared once. One that is left out is left to the function that the command calls, whose default the help
shows: a help text says ``{knn_shapley.k}`` and no number. A command returns its :class:`Outcome`; :func:`command` reads
the conditions of ``--fail-if`` before any work, and says what came out.
"""

import inspect
import json
import math
import operator
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, dataclass_transform

import typer
from typer import Option
from typer.core import TyperCommand
from typer.models import OptionInfo

from datassay._errors import UsageError
from datassay._version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from datassay._work import Progress
    from datassay.results import Fact


def option(help: str, *names: str, default: object = None, **more: Any) -> Any:
    """An option, by what the help says of it; its name is that of the parameter unless there are ``names``."""
    return Option(default, *names, help=help, **more)


def given(**options: Any) -> dict[str, Any]:
    """Those that were given, by name; a flag only if it is up."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


@dataclass_transform(frozen_default=True)
class Options:
    """A group of options: what is derived from it is a frozen dataclass, its fields declared with :func:`option`."""

    panel: ClassVar[str | None] = None  # under which heading the help has them, if it is one of their own

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    def given(self, *names: str) -> dict[str, Any]:
        """Those that were given (of these, if any are named), by name."""
        return given(**{name: one for name, one in vars(self).items() if not names or name in names})


def groups_of(function: Callable[..., object]) -> tuple[dict[str, type[Options]], list[inspect.Parameter]]:
    """The parameters of a command that are groups of options, and all of its options one by one."""
    groups: dict[str, type[Options]] = {}
    single: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, Options):
            groups[parameter.name] = kind
            single += map(partial(_declared, kind.panel), inspect.signature(kind, eval_str=True).parameters.values())
        else:
            single.append(_declared(None, parameter))
    return groups, single


def _declared(panel: str | None, parameter: inspect.Parameter) -> inspect.Parameter:
    """An option as typer takes it: under its heading, and a flag without an opposite."""
    declared = copy(parameter.default)
    if isinstance(declared, OptionInfo):
        declared.rich_help_panel = panel
        if parameter.annotation is bool:
            declared.default = False
            declared.param_decls = declared.param_decls or (f"--{parameter.name.replace('_', '-')}",)
    return parameter.replace(default=declared, kind=inspect.Parameter.KEYWORD_ONLY)


def parameters(function: str) -> Mapping[str, inspect.Parameter]:
    """What a public function takes."""
    import datassay

    return inspect.signature(getattr(datassay, function)).parameters


def default(function: str, name: str) -> Any:
    """The default of a parameter of a public function."""
    return parameters(function)[name].default


# What a function that has no parameter of an option's name must take for the option to mean something.
_TAKEN_AS: Final = {
    "balance": "weights",
    "classes": "n_classes",
    "convergence": "max_width",
    "group_by": "groups",
    "kappa": "model",
    "lam": "model",
    "max_coalitions": "max_bags",
}


def parameter_of(function: str, option: str) -> str | None:
    """The parameter that an option of this name is for; None if it means nothing to the function."""
    taken = parameters(function)
    return next((name for name in (option, _TAKEN_AS.get(option)) if name in taken), None)


def check_given(method: str, given: Mapping[str, object], allowed: Callable[[str], object]) -> None:
    """Refuse an option that was given and means nothing to the method."""
    for name in given:
        if not allowed(name):
            raise UsageError(f"--{name.replace('_', '-')} does not apply to {method}")


class Command(TyperCommand):
    """A command whose help shows the defaults of the functions that it calls."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, with the defaults filled in."""
        options: list[Any] = self.params
        for option in options:
            option.help = (option.help or "").format_map(_Defaults())
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """What a word may become; without the defaults, which take longer to find than a shell should wait."""
        options: list[Any] = self.params
        for option in options:
            option.help = re.sub(r" \([^()]*\{[^()]*\)", "", option.help or "")
        return super().shell_complete(ctx, incomplete)


class _Defaults(dict[str, Any]):
    """What stands in braces in a help text: a default of :mod:`datassay._choices`, or a public function's."""

    def __missing__(self, name: str) -> Any:
        import datassay
        from datassay import _choices

        return _shown("", getattr(_choices, name)) if name.isupper() else _Function(getattr(datassay, name))


class _Function:
    """A function or a method with the defaults of its parameters, as they are shown."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __getattr__(self, name: str) -> Any:
        taken = inspect.signature(self.function).parameters
        return _shown(name, taken[name].default) if name in taken else _Function(getattr(self.function, name))


def _shown(name: str, value: object) -> str:
    if name == "memory" and isinstance(value, int):
        value //= 2**20  # MiB
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_shown("", one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


class Ending(Options):
    """What a command says, and what is to be a failure."""

    quiet: bool = option("No progress and no summary.", "--quiet", "-q")
    as_json: bool = option("Print one JSON object (facts, notes, files written) in place of the summary.", "--json")
    fail_if: list[str] | None = option(
        'Exit with status 1 if a fact of --json is so: NAME OP NUMBER, such as "records < 100". May be repeated.',
        metavar="CONDITION",
    )

    @property
    def progress(self) -> "Progress":
        """A bar where somebody is there to look at it, lines in a file or a pipe, nothing if that is wanted."""
        if self.quiet or sys.stderr.isatty():
            return not self.quiet
        from datassay._work import Pace

        return Pace()


@dataclass(frozen=True)
class Outcome:
    """What came out of a command.

    ``said`` are texts for a person. A note that one of them holds already is not repeated; in JSON all are listed.
    """

    facts: "Mapping[str, Fact]"
    said: Sequence[str]
    notes: Sequence[str] = ()
    written: Sequence[Path | None] = ()
    ended: BaseException | None = None  # raised when all was said


def command(name: str, app: typer.Typer | None = None) -> Callable[[Callable[..., Outcome]], Callable[..., None]]:
    """Make a function a command: its groups of options are taken apart for typer, and its outcome is said.

    One of a group of commands is added to ``app``, which the group is.
    """

    def make(function: Callable[..., Outcome]) -> Callable[..., None]:
        groups, single = groups_of(function)

        @wraps(function)
        def run(**options: Any) -> None:
            conditions = check_conditions(options["fail_if"])
            for at, group in groups.items():
                options[at] = group(**{field: options.pop(field) for field in inspect.signature(group).parameters})
            outcome = function(**options)
            try:
                ending = next(group for group in options.values() if isinstance(group, Ending))
                conclude(name, outcome, ending, conditions)
            finally:
                if outcome.ended is not None:
                    raise outcome.ended

        run.__signature__ = inspect.Signature(single)  # type: ignore[attr-defined]
        run.__annotations__ = {option.name: option.annotation for option in single}
        return run if app is None else app.command(cls=Command)(run)

    return make


_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
# A name may hold anything, operators too: what counts is the last operator, which a number must follow. One that is the
# end of something else (>>, =<, <>) is none.
_CONDITION: Final = re.compile(rf"(.*\S)\s*(?<![<>=!])({'|'.join(_COMPARISONS)})\s*([^\s<>=!]+)", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """What must not be so: the fact of this name compared with a number."""

    text: str
    name: str
    comparison: str
    number: float

    def holds(self, found: float) -> bool:
        """Whether it is so of this number."""
        return _COMPARISONS[self.comparison](found, self.number)


def check_conditions(fail_if: list[str] | None) -> list[Condition]:
    """The conditions of ``--fail-if``; one that cannot be read is refused, before any work."""
    found = []
    for given in fail_if or []:
        text = given.strip()
        parts = _CONDITION.fullmatch(text)
        try:
            number = float(parts[3]) if parts else math.nan
        except ValueError:
            number = math.nan
        if parts is None or not math.isfinite(number):
            raise UsageError(
                f"--fail-if takes NAME OP NUMBER with an OP of >, >=, <, <=, == and !=, such as 'records < 100'; got "
                f"{given!r}"
            )
        found.append(Condition(text, parts[1], parts[2], number))
    return found


def conclude(command: str, outcome: Outcome, ending: Ending, conditions: Sequence[Condition]) -> None:
    """Say what came out, in words or as JSON, and end with status 1 if a condition of ``--fail-if`` holds."""
    from datassay._checks import visible
    from datassay.results import as_facts

    plain, notes = as_facts(outcome.facts), list(dict.fromkeys(outcome.notes))
    files = [str(path) for path in outcome.written if path is not None]
    if ending.as_json:
        shown = {"command": command, "version": __version__, "facts": plain, "notes": notes, "written": files}
        text = json.dumps(shown, ensure_ascii=False, allow_nan=False, indent=1)
        # Bytes, so that it is UTF-8 whatever the terminal's encoding is. A file name that is no text is escaped.
        typer.echo(text.encode("utf-8", "backslashreplace"))
    elif not ending.quiet:
        new = [f"Note: {note}" for note in notes if not any(f"Note: {note}" in text for text in outcome.said)]
        for text in (*outcome.said, *new, *(f"Written: {file}" for file in files)):
            typer.echo(visible(text))
    _judge(plain, conditions)


def _judge(facts: "Mapping[str, Fact]", conditions: Sequence[Condition]) -> None:
    """Say which conditions hold, and end with status 1 if any does; a name that is no fact is a mistake of the call."""
    from datassay import _checks

    known = {name.strip(): fact for name, fact in facts.items()}
    for condition in conditions:
        if condition.name not in known:
            close = _checks.closest(condition.name, known)
            hint = f"did you mean {close!r}? There" if close else "there"
            raise UsageError(
                f"--fail-if {condition.text!r}: there is no fact {condition.name!r} here; {hint} are "
                f"{_checks.listed(known, 60)}"
            )
        if isinstance(known[condition.name], str):
            raise UsageError(
                f"--fail-if {condition.text!r}: {condition.name} is {known[condition.name]!r}, which is no number"
            )
    failed = False
    for condition in conditions:
        fact = known[condition.name]
        assert not isinstance(fact, str)
        if fact is None:
            complain(f"--fail-if {condition.text!r}: {condition.name} is not known, so it cannot be ruled out")
        elif condition.holds(fact):
            complain(f"--fail-if {condition.text!r} holds: {condition.name} is {str(fact).lower()}")
        else:
            continue
        failed = True
    if failed:
        raise typer.Exit(1)


def complain(message: str) -> None:
    """One line on standard error, red where that is wanted."""
    from datassay._checks import visible

    # typer leaves NO_COLOR (https://no-color.org) to whoever calls it.
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    line = visible(" ".join(f"datassay: {message}".split()))
    typer.echo(typer.style(line, fg="red") if coloured else line, err=True)


def listing(*headings: str, rows: Sequence[Sequence[str]]) -> str:
    """A table with these headings, as plain text."""
    from rich.table import Table

    table = Table(*headings, box=None)
    for row in rows:
        table.add_row(*row)
    return as_text(table)


def as_text(*shown: object) -> str:
    """Tables of rich as plain text: as wide as the terminal, or, where it goes to a file or a pipe, as they are."""
    import io

    from rich.console import Console

    width = None if sys.stdout.isatty() else 10_000
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False, markup=False)
    for part in shown:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


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


def check_files(read: "Sequence[str | Path | None]", tables: Files = (), figures: Files = (), also: Files = ()) -> None:
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


def save(
    result: Any, output: Path | None, plot: Path | None = None, width: float = 7, height: float = 4, **how: Any
) -> None:
    """Save a result and draw it, whichever is asked for."""
    if output is not None:
        result.save(output)
    draw(lambda axes: result.plot(ax=axes, **given(**how)), plot, width, height)
