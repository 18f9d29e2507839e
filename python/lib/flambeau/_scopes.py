"""What generated text speaks of: qualified names, things by their numbers, and scopes. It knows nothing of what they mean."""

from __future__ import annotations

from typing import Any, Callable

# --- names ---

_taken: dict[str, int] = {}
_mangled = 0


def unique_name(module: str, name: str) -> str:
    """A qualified name that nothing of this process has yet, as PyTorch makes it."""
    global _mangled
    module = "__torch__" if module in ("__main__", "", None) else f"__torch__.{module}"
    full = f"{module}.{name}"
    if full in _taken:
        full = f"{module}.___torch_mangle_{_mangled}.{name}"
        _mangled += 1
    _taken[full] = 1
    return full


# --- things by number ---

_numbered: list[Any] = []


def number_of(thing: Any) -> int:
    """A number under which generated text and the compiler speak of a thing."""
    _numbered.append(thing)
    return len(_numbered) - 1


_ignored: list[Callable[..., Any]] = []


def call_ignored(number: int, arguments: tuple[Any, ...]) -> Any:
    """Calls a function that a program leaves to Python."""
    return _ignored[number](*arguments)


# --- scopes ---


class Scope:
    """Names around a text: a function's globals and the variables that it closes over."""

    def __init__(self, function: Callable[..., Any] | None = None, names: dict[str, Any] | None = None) -> None:
        self.names: dict[str, Any] = dict(names or {})
        self.globals: dict[str, Any] = {}
        if function is not None:
            self.globals = function.__globals__
            closure = function.__closure__ or ()
            for name, cell in zip(function.__code__.co_freevars, closure):
                try:
                    self.names[name] = cell.cell_contents
                except ValueError:
                    continue

    def find(self, name: str) -> tuple[bool, Any]:
        """Whether the name is there, and what it means."""
        if name in self.names:
            return True, self.names[name]
        if name in self.globals:
            return True, self.globals[name]
        return False, None


_scopes: list[Scope] = []


def scope_number(scope: Scope) -> int:
    """The number of a scope."""
    _scopes.append(scope)
    return len(_scopes) - 1


class CompilerError(Exception):
    """The compiler's message for a name that cannot be used; it adds the place."""

    of_compiler = True
