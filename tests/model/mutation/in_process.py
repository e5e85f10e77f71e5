"""Bugs put into the functions of this process, to be undone by a monkeypatch.

A function gets the code of its mutated source, which runs wherever the function is held. The edits
are those of the ledger; each has to be within one function or method.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import CodeType, FunctionType

import pytest
from tests.model.mutation.mutant import Edit, EditError, Place, Sources, replaced


@cache
def sources() -> Sources:
    """Return the sources of the project, read once."""
    return Sources()


def put_in(patch: pytest.MonkeyPatch, edits: Sequence[Edit]) -> None:
    """Put edits into the functions that they name; raises EditError."""
    for edit in edits:
        place, match = edit.found_in(sources())
        text = replaced(sources().texts[place.file], [(match, edit.replacement())])
        patch.setattr(_function_at(place), "__code__", _code_of(place, text))


def _code_of(place: Place, text: str) -> CodeType:
    """Return the code of a function in a module's text, compiled as Python does it."""
    module = compile(text, place.file, "exec")
    found = [one for one in _nested(module) if one.co_qualname == place.name]
    if len(found) != 1:
        raise EditError(f"{place} is not one function")
    return found[0]


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def _function_at(place: Place) -> FunctionType:
    """Return the function that a place names, below properties and other wrappings."""
    found: object = importlib.import_module(f"kvorum.{place.module}")
    for name in place.name.split("."):
        found = vars(found)[name]
    while not isinstance(found, FunctionType):
        found = _wrapped(found)
    return found


def _wrapped(found: object) -> object:
    getters: tuple[Callable[[object], object], ...] = (
        lambda one: one.fget if isinstance(one, property) else None,
        lambda one: getattr(one, "__wrapped__", None),
        lambda one: getattr(one, "__func__", None),
    )
    for getter in getters:
        inner = getter(found)
        if inner is not None:
            return inner
    raise EditError(f"{found!r} is not a function")
