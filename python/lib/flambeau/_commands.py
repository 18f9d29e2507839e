"""The commands that the wheel installs: `flambeau`, `FileCheck` and `lit`."""

import sys

from . import _flambeau


def _run(words: list[str]) -> None:
    sys.exit(_flambeau.command([*words, *sys.argv[1:]]))


def flambeau() -> None:
    """Every command of Flambeau."""
    _run(["flambeau"])


def filecheck() -> None:
    """FileCheck, in LLVM's language."""
    _run(["FileCheck"])


def lit() -> None:
    """lit: tests by their RUN lines."""
    _run(["lit"])
