"""The work behind `kvorum.wire.values`: a dataclass whose methods are made when first called.

`dataclasses.dataclass` compiles up to six methods for each class when the class is made: half a
millisecond of every start for each of some hundred and fifty classes. Here the standard library
reads the fields as ever, but makes a method only when it is called first: for a twin class with the
same fields, whose method is then put into the real one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, cast

# Methods of classes that are only known at run time.
Method = Callable[..., Any]
_INIT, _REPR, _EQ, _HASH = "__init__", "__repr__", "__eq__", "__hash__"


def lazy_dataclass(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    order: bool = False,
) -> Any:
    """Make a dataclass of `cls`, or return the decorator that does.

    Takes the options that kvorum uses. An ordered one, and one with `__post_init__`, is left to
    the standard library.
    """

    def decorate(decorated: type) -> type:
        if order or hasattr(decorated, "__post_init__"):
            options = {"frozen": frozen, "slots": slots, "kw_only": kw_only, "order": order}
            return _standard(decorated, **options)
        return _with_lazy_methods(decorated, frozen=frozen, slots=slots, kw_only=kw_only)

    return decorate if cls is None else decorate(cls)


def _with_lazy_methods(decorated: type, *, frozen: bool, slots: bool, kw_only: bool) -> type:
    own = {name for name, value in decorated.__dict__.items() if value is not None}
    options = {"init": False, "repr": False, "eq": False, "slots": slots, "kw_only": kw_only}
    made = _standard(decorated, **options)
    wanted: dict[str, Any] = {}
    if frozen:
        wanted |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
        wanted |= {"__getstate__": _state, "__setstate__": _set_state}
    lazy = [name for name in (_INIT, _REPR, _EQ) if name not in own]
    if _HASH not in own:
        if frozen:
            lazy.append(_HASH)
        else:
            wanted[_HASH] = None
    wanted |= {name: _first_call(made, name, frozen=frozen) for name in lazy}
    for name, method in wanted.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _standard(cls: type, **options: bool) -> type:
    decorate = cast("Callable[[type], type]", dataclasses.dataclass(**options))
    return decorate(cls)


def _first_call(cls: type, name: str, *, frozen: bool) -> Method:
    """Return a method that makes the real one, puts it in its own place and calls it."""

    def first(self: object, *arguments: object, **named: object) -> Any:
        method: Method = _twin(cls, name, frozen=frozen).__dict__[name]
        method.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, method)
        return method(self, *arguments, **named)

    return first


def _twin(cls: type, name: str, *, frozen: bool) -> type:
    """Return a standard dataclass with the fields of `cls` and, of its methods, `name` alone."""
    fields = dataclasses.fields(cls)
    namespace: dict[str, Any] = {
        "__doc__": "A twin, see `lazy_dataclass`.",
        "__module__": cls.__module__,
        "__annotations__": {each.name: object for each in fields},
        **{each.name: _same_field(each) for each in fields},
    }
    return _standard(
        type(cls.__name__, (), namespace),
        init=name == _INIT,
        repr=name == _REPR,
        eq=name in {_EQ, _HASH},
        unsafe_hash=name == _HASH,
        frozen=frozen and name == _INIT,
        match_args=False,
    )


def _same_field(field: dataclasses.Field[Any]) -> Any:
    options: dict[str, Any] = {
        "init": field.init,
        "repr": field.repr,
        "hash": field.hash,
        "compare": field.compare,
        "kw_only": field.kw_only,
    }
    if field.default is not dataclasses.MISSING:
        options["default"] = field.default
    if field.default_factory is not dataclasses.MISSING:
        options["default_factory"] = field.default_factory
    return dataclasses.field(**options)


def _refuse_assignment(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
