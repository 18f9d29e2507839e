"""`python -m flambeau`: the command line, where no script of the wheel is on the path."""

from ._commands import flambeau

flambeau()
