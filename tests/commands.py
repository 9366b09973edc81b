"""Calling commands in tests: what they print, and how they end."""

import sys
import time
from contextlib import suppress

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


def wait_for_work(process, seconds):
    """Wait until a process and those it started have worked for so long, however busy the machine is."""
    import psutil

    while process.poll() is None:
        worked = 0.0
        with suppress(psutil.Error):  # one may just have ended
            for one in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
                worked += sum(one.cpu_times()[:2])
        if worked >= seconds:
            return
        time.sleep(0.05)
