"""The command line: one module per command, each a thin layer over the library."""

import sys
from typing import Annotated

import typer

from datassay import __version__
from datassay._errors import InputError, MissingDependencyError
from datassay.cli import attack, datasets, ledger, market, private_value, release, reproduce, risk, unique, value

app = typer.Typer(
    name="datassay",
    help="What every record of a data set is worth, what leaks, who can be found in it, what may be told and how to "
    "trade it. Reads your CSV or Parquet; see `datassay value --help`.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("value")(value.value)
app.command("private-value")(private_value.private_value)
app.command("attack")(attack.attack)
app.command("unique")(unique.unique)
app.command("risk")(risk.risk)
app.command("release")(release.release)
app.add_typer(market.app, name="market")
app.add_typer(ledger.app, name="ledger")
app.command("datasets")(datasets.datasets)
app.command("reproduce")(reproduce.reproduce)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"datassay {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line: a bad input is one clear line on standard error and exit status 2."""
    try:
        app()
    except (InputError, MissingDependencyError) as error:
        typer.secho(f"datassay: {error}", fg="red", err=True)
        sys.exit(2)
    except OSError as error:
        typer.secho(f"datassay: {error}", fg="red", err=True)
        sys.exit(1)
    except MemoryError:
        typer.secho("datassay: out of memory; give a smaller --memory, or fewer --jobs", fg="red", err=True)
        sys.exit(1)
