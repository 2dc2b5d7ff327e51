"""What a failure looks like: a message and the next step, on stderr for people, as JSON on stdout for programs."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from lukasa.model.errors import InvalidInput, LukasaError, SpecError
from lukasa.surfaces.cli.output import encode, safe

FAILED, WRONG = 1, 2


def report(error: Exception, *, as_json: bool) -> int:
    """Tell the user, and give the exit code."""
    code, message, fix = describe(error)
    if as_json:
        click.echo(encode({"error": {"code": code, "message": message, "fix": fix}}))
    else:
        click.echo(f"error: {safe(message)}", err=True)
        if fix:
            click.echo(f"  fix: {safe(fix)}", err=True)
    if os.environ.get("LUKASA_DEBUG") and not isinstance(error, click.ClickException):
        import_module("traceback").print_exception(error, file=sys.stderr)
    return exit_code(error)


def describe(error: Exception) -> tuple[str, str, str]:
    """A stable code, what happened, and what to do."""
    if isinstance(error, LukasaError):
        return error.code, error.message, error.fix
    if isinstance(error, click.UsageError):
        asked = error.ctx.command_path if error.ctx else "lukasa"
        return "usage", error.format_message(), f"see `{asked} --help`"
    if isinstance(error, click.ClickException):
        return "usage", error.format_message(), ""
    kind = type(error).__name__
    if os.environ.get("LUKASA_DEBUG"):
        return "unexpected", f"unexpected {kind}: {error}", "please report it with the traceback"
    return "unexpected", f"unexpected {kind}: {error}", "run it again with LUKASA_DEBUG=1 and report the traceback"


def exit_code(error: Exception) -> int:
    return WRONG if isinstance(error, InvalidInput | SpecError | click.UsageError) else FAILED
