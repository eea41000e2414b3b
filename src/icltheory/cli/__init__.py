"""The command `icl`: curve, simulate, train, effective-length, probe, reproduce, doctor."""

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

import tyro

from icltheory.cli.arguments import parse_values
from icltheory.cli.correlations import effective_length
from icltheory.cli.installation import doctor
from icltheory.cli.probing import probe
from icltheory.cli.reproduction import reproduce
from icltheory.cli.simulation import simulate
from icltheory.cli.theory import curve
from icltheory.cli.training import train

__all__ = ["main", "parse_values"]

_COMMANDS = (curve, simulate, train, effective_length, probe, reproduce, doctor)
_ABOUT = "Theory and practice of in-context learning: predict, simulate, train, probe, reproduce."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a wrong input ends in one line on standard error and status 2."""
    from icltheory import __version__

    words = sys.argv[1:] if arguments is None else list(arguments)
    if words in (["--version"], ["-V"]):
        print(f"icltheory {__version__}")
        return
    app = tyro.extras.SubcommandApp()
    for command in _COMMANDS:
        app.command(command)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            app.cli(prog="icl", description=_ABOUT, args=words, config=(tyro.conf.OmitArgPrefixes,))
    except BrokenPipeError:  # the reader left, as in `icl curve | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except (ValueError, TypeError, OSError, MemoryError, ArithmeticError, RuntimeError, ImportError) as error:
        print(f"icl: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("icl: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _show(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    """Print a warning as the one line that a user needs."""
    print(f"icl: warning: {message}", file=sys.stderr)
