"""Calling commands in tests: what they print, and how they end."""

import sys

import pytest
from typer.testing import CliRunner

from datassay.cli import app, main


def run(*arguments):
    """What a command prints, with its exit code; an error is raised."""
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def complain(capsys, monkeypatch, *arguments):
    """The exit code, and what is said on standard error, through the real entry point."""
    monkeypatch.setattr(sys, "argv", ["datassay", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr().err
