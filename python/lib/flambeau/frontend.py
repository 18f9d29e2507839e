"""`flambeau.frontend`: the errors that `torch.jit.frontend` has for source that cannot be compiled."""

from __future__ import annotations

from ._source import FrontendError as FrontendError
from ._source import NotSupportedError as NotSupportedError
from ._source import UnsupportedNodeError as UnsupportedNodeError
