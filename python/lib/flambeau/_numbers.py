"""`finfo` and `iinfo`: what numbers of a dtype can say."""

from __future__ import annotations

from ._flambeau import dtype

# Bits of the exponent and of the fraction.
_FLOATS = {"float64": (11, 52), "float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7)}
_PARTS = {"complex64": "float32", "complex128": "float64"}


def _name(of: dtype) -> str:
    return str(of).removeprefix("torch.")


class finfo:
    """The limits of a floating dtype."""

    def __init__(self, type: dtype) -> None:
        name = _PARTS.get(_name(type), _name(type))
        if name not in _FLOATS:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.{name}'")
        exponent, fraction = _FLOATS[name]
        bias = 2 ** (exponent - 1) - 1
        self.bits = 1 + exponent + fraction
        self.dtype = name
        self.eps = 2.0**-fraction
        self.max = (2 - 2.0**-fraction) * 2.0**bias
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - bias)
        self.resolution = 10.0 ** -int(fraction * 0.30102999566398)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, type: dtype) -> None:
        name = _name(type)
        if "int" not in name:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.{name}'")
        self.bits = int(name.lstrip("uint"))
        self.dtype = name
        signed = not name.startswith("u")
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.max = 2 ** (self.bits - 1) - 1 if signed else 2**self.bits - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
