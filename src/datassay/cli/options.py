"""Options in groups: each declared once, given to typer one by one and to a command whole.

An option that is left out is left to the function that the command calls, whose default the help shows: a help text
says ``{knn_shapley.k}`` and no number.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import fields
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

from typer import Option
from typer.core import TyperCommand
from typer.models import OptionInfo

from datassay._errors import UsageError


def option(help: str, *names: str, default: object = None, **more: Any) -> Any:
    """An option, by what the help says of it; its name is that of the parameter unless there are ``names``."""
    return Option(default, *names, help=help, **more)


def given(**options: Any) -> dict[str, Any]:
    """Those that were given, by name; a flag only if it is up."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


class Options:
    """A group of options: a frozen dataclass, its fields declared with :func:`option`."""

    panel: ClassVar[str | None] = None  # under which heading the help has them, if it is one of their own

    def given(self, *names: str) -> dict[str, Any]:
        """Those that were given (of these, if any are named), by name."""
        wanted = names or [field.name for field in fields(self)]  # type: ignore[arg-type]
        return given(**{name: getattr(self, name) for name in wanted})


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


def check_applies(method: str, given: Mapping[str, object], allowed: Callable[[str], bool]) -> None:
    """Refuse an option that was given and means nothing to the method."""
    for name in given:
        if not allowed(name):
            raise UsageError(f"--{name.replace('_', '-')} does not apply to {method}")


class Command(TyperCommand):
    """A command whose help shows the defaults of the functions that it calls."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, with the defaults filled in."""
        defaults = _Defaults()
        options: list[Any] = self.params
        for option in options:
            option.help = (option.help or "").format_map(defaults)
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """What a word may become; without the defaults, which take longer to find than a shell should wait."""
        options: list[Any] = self.params
        for option in options:
            option.help = re.sub(r" \([^()]*\{[^()]*\)", "", option.help or "")
        return super().shell_complete(ctx, incomplete)


class _Defaults(dict[str, SimpleNamespace]):
    """Functions by name, with the defaults of their parameters as they are shown."""

    def __missing__(self, function: str) -> SimpleNamespace:
        self[function] = SimpleNamespace(**{n: _shown(n, p.default) for n, p in parameters(function).items()})
        return self[function]


def _shown(name: str, value: object) -> str:
    if name == "memory" and isinstance(value, int):
        value //= 2**20  # MiB
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_shown("", one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
