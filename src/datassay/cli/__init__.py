"""The command line: one module per command, each a thin layer over the library."""

import inspect
import os
import signal
import sys
import threading
import traceback
from collections import UserDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType
from typing import Any, Final, Literal, get_args

import typer
from typer import completion
from typer.core import TyperGroup

from datassay import __version__
from datassay._errors import InputError, MissingDependencyError, UnavailableError, UsageError
from datassay.cli.command import Command, complain, option

USAGE, DATA, CANNOT, BUG, INTERRUPTED = 2, 3, 4, 70, 130
BROKEN_PIPE: Final = 141  # what the shell says of a program that writes to a pipe nobody reads: 128 + SIGPIPE

EXIT_CODES = """
Every command takes --json, --fail-if, --quiet and --debug.

Exit codes:
  0    it is done;
  1    a condition of --fail-if holds, or a reproduction does not;
  2    the command line is wrong;
  3    the data is: not there, not readable, too little;
  4    it cannot be done: no budget, memory, space, permission or package;
  70   a bug in datassay;
  130  interrupted.
""".strip()

# Each has a module of its name, which is loaded when the command is asked for.
COMMANDS: Final = (
    "report", "value", "private-value", "attack", "unique", "risk", "release", "datasets", "reproduce", "market",
    "ledger",
)  # fmt: skip


class _Commands(UserDict[str, Any]):
    """The commands by name, each built when it is asked for; every one has --debug, before or after its name."""

    def __init__(self, debug: Any) -> None:
        super().__init__(dict.fromkeys(COMMANDS))
        self.debug = debug

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = self._build(name)
        return self.data[name]

    def _build(self, name: str) -> Any:
        own = name.replace("-", "_")
        module = import_module(f"{__name__}.{own}")
        alone = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
        alone.callback()(lambda: None)
        if hasattr(module, "app"):
            alone.add_typer(module.app, name=name)
        else:
            alone.command(name, cls=Command)(getattr(module, own))
        whole: Any = typer.main.get_command(alone)
        command = whole.commands[name]
        for part in (command, *getattr(command, "commands", {}).values()):
            part.params.append(self.debug)
            part.help = _flowing(part.help or "")
        return command


class _Whole(TyperGroup):
    """The command line as a whole: it loads no command but the one that is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Commands(next(option for option in self.params if option.name == "debug"))


def _flowing(text: str) -> str:
    """Prose without the line breaks of its source, so that it fills lines of any width; examples as they are."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(part if "\n " in part else part.replace("\n", " ") for part in paragraphs)


app = typer.Typer(
    name="datassay",
    cls=_Whole,
    help="What every record of a data set is worth, what leaks, who can be found in it, what may be told and how to "
    "trade it. Reads your CSV or Parquet. Start with `datassay report people.csv --label income`.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,  # typer's own asks which shell is running, and cannot be told
    context_settings={"help_option_names": ["-h", "--help"]},
)
NAME: Final = "datassay"
_SCRIPTS: Any = completion  # typer ships these functions, and says so to no type checker
COMPLETE_VARIABLE: Final = "_DATASSAY_COMPLETE"
Shell = Literal["bash", "zsh", "fish", "powershell", "pwsh"]
SHELLS: Final = f"{', '.join(get_args(Shell)[:-1])} or {get_args(Shell)[-1]}"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"datassay {__version__}")
        raise typer.Exit


def _show_completion(shell: Shell | None) -> None:
    if shell is not None:
        typer.echo(_SCRIPTS.get_completion_script(prog_name=NAME, complete_var=COMPLETE_VARIABLE, shell=shell))
        raise typer.Exit


def _install_completion(shell: Shell | None) -> None:
    if shell is not None:
        _, path = _SCRIPTS.install(shell, NAME, COMPLETE_VARIABLE)
        typer.echo(f"Written: {path}. Completion works in terminals opened from now on.")
        raise typer.Exit


_SHELL: Final[dict[str, Any]] = {"is_eager": True, "metavar": "SHELL"}


@app.callback()
def _options(
    version: bool = option("Print the version.", "--version", default=False, callback=_show_version, is_eager=True),
    show_completion: Shell | None = option(
        f"Print what lets {SHELLS} complete words.", callback=_show_completion, **_SHELL
    ),
    install_completion: Shell | None = option(
        "Set that up for terminals opened later.", callback=_install_completion, **_SHELL
    ),
    debug: bool = option(
        "Show where an error comes from, if there is one.", "--debug", default=False, expose_value=False
    ),
) -> None:
    pass


def build() -> Any:
    """The whole command line."""
    _SCRIPTS.completion_init()
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line: an error is one clear line on standard error, and an exit code that says whose it is.

    With --debug the traceback comes first.
    """
    arguments = sys.argv[1:]
    if os.environ.get(COMPLETE_VARIABLE):
        build().main(arguments, prog_name=NAME, complete_var=COMPLETE_VARIABLE)  # it is the shell that asks
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that has no ε shall have a question mark
            stream.reconfigure(errors="replace")
    with _noticing_interrupts() as interrupts:
        try:
            whole = build()
            with whole.make_context(NAME, list(arguments)) as context:
                whole.invoke(context)
                sys.stdout.flush()
            code = _explain(KeyboardInterrupt()) if interrupts else 0
        except typer.Exit as stop:
            code = stop.exit_code
        except SystemExit as stop:
            if not isinstance(stop.__context__, BrokenPipeError):
                raise
            code = BROKEN_PIPE  # rich, which prints help, says 1 of it
        except (Exception, KeyboardInterrupt) as error:
            if "--debug" in arguments:
                traceback.print_exception(error)
            # A library that was interrupted may say so in words of its own: a file that cannot be read, say.
            said = isinstance(error, KeyboardInterrupt) or not interrupts
            code = _explain(error if said else KeyboardInterrupt())
    sys.exit(code)


@contextmanager
def _noticing_interrupts() -> Iterator[list[int]]:
    """Remember that ^C was pressed, even if a library swallows the KeyboardInterrupt that it raises."""
    seen: list[int] = []
    sent: list[threading.Timer] = []

    def notice(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield seen  # somebody else minds the interrupts, or they are ignored: so it stays
        return

    def again(problem: Any) -> None:
        """An interrupt that came where Python cannot raise it (a finaliser, say) is sent once more."""
        if not issubclass(problem.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(problem)
            return
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()
        sent.append(timer)

    signal.signal(signal.SIGINT, notice)
    sys.unraisablehook = again
    try:
        yield seen
    finally:
        for timer in sent:
            timer.cancel()  # what is noticed need not be sent to a program that ends
        sys.unraisablehook = sys.__unraisablehook__
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _explain(error: BaseException) -> int:
    """Say in one line what went wrong; the exit code for it."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        complain(str(error) or "interrupted")
        return INTERRUPTED
    if isinstance(error, InputError | MissingDependencyError):
        complain(str(error))
        cannot = isinstance(error, UnavailableError | MissingDependencyError)
        return CANNOT if cannot else USAGE if isinstance(error, UsageError) else DATA
    if hasattr(error, "format_message"):
        return _explain_call(error)
    if isinstance(error, BrokenPipeError):  # who read the output has seen enough
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename is not None else ""
        complain(f"{error.strerror or error}{where}")
        return CANNOT
    if isinstance(error, MemoryError):
        complain("out of memory; give a smaller --memory, or fewer --jobs")
        return CANNOT
    if isinstance(error, ModuleNotFoundError) and not (error.name or NAME).startswith(NAME):
        complain(f"the package {error.name} is needed and not installed; install it with: pip install {error.name}")
        return CANNOT
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    complain(f"{what}. This is a bug in datassay; run again with --debug to see where, and report it")
    return BUG


def _explain_call(error: Any) -> int:
    """The same for what typer says of a command line that it cannot read."""
    message, context = error.format_message().strip(), getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True, nl=bool(message))  # with rich, the help is on the screen already
        return USAGE
    command = NAME if context is None else context.command_path
    complain(f"{message.removesuffix('.')}; see '{command} --help'")
    return USAGE
