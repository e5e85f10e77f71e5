"""A value class made lazily behaves as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from kvorum.wire.lazy_dataclass import lazy_dataclass

Decorator = Callable[..., Any]
BOTH = pytest.mark.parametrize(
    "decorator", [dataclasses.dataclass, lazy_dataclass], ids=["standard", "lazy"]
)


def point(decorator: Decorator, **options: bool) -> Any:
    class Point:
        """A value."""

        kind: ClassVar[str] = "point"
        x: int
        y: int = 2
        tags: list[str] = dataclasses.field(default_factory=list[str])
        note: str = dataclasses.field(default="", compare=False, repr=False)

    return decorator(slots=True, **options)(Point)


@dataclass(frozen=True, slots=True)
class Pickled:
    """A value at the top of a module, where pickle finds it."""

    a: int
    b: str = "b"


@BOTH
@pytest.mark.parametrize("frozen", [True, False])
def test_values_are_made_and_compared(decorator: Decorator, frozen: bool) -> None:
    kind = point(decorator, frozen=frozen)
    one, same, other = kind(1, note="n"), kind(x=1, y=2, tags=[]), kind(1, 3)
    assert one == same
    assert one != other
    assert one != (1, 2, [])
    assert (one.x, one.y, one.tags, one.note, one.kind) == (1, 2, [], "n", "point")
    assert one.tags is not same.tags
    assert repr(one).endswith("Point(x=1, y=2, tags=[])")
    assert not hasattr(one, "__dict__")


@BOTH
def test_wrong_arguments_are_refused(decorator: Decorator) -> None:
    kind = point(decorator)
    wrong: list[tuple[tuple[object, ...], dict[str, object]]] = [
        ((), {}),
        ((1, 2, [], "", 5), {}),
        ((1,), {"z": 1}),
        ((1,), {"x": 1}),
    ]
    for arguments, named in wrong:
        with pytest.raises(TypeError, match="__init__"):
            kind(*arguments, **named)


@BOTH
def test_fields_after_the_star_take_no_position(decorator: Decorator) -> None:
    kind = point(decorator, kw_only=True)
    assert kind(x=4).x == 4
    with pytest.raises(TypeError):
        kind(4)


@BOTH
def test_frozen_values_stay_as_they_are_and_have_a_hash(decorator: Decorator) -> None:
    def pair() -> Any:
        class Pair:
            """A value that can be a key."""

            a: int
            b: str = "b"

        return decorator(frozen=True, slots=True)(Pair)

    kind = pair()
    one = kind(1)
    assert hash(one) == hash(kind(1, "b"))
    assert {one: "found"}[kind(1)] == "found"
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        one.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del one.a
    assert dataclasses.replace(one, a=5) == kind(5)
    assert dataclasses.astuple(one) == (1, "b")


@BOTH
def test_mutable_values_have_no_hash(decorator: Decorator) -> None:
    value = point(decorator)(1)
    value.x = 9
    assert value.x == 9
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)


@BOTH
def test_methods_of_ones_own_are_kept(decorator: Decorator) -> None:
    class Own:
        """A value with opinions."""

        a: int

        def __repr__(self) -> str:
            return "mine"

        def __hash__(self) -> int:
            return 7

        def __str__(self) -> str:
            return "text"

    kind = decorator(frozen=True, slots=True)(Own)
    assert (repr(kind(1)), hash(kind(1)), str(kind(1))) == ("mine", 7, "text")
    assert kind(1) == kind(1)


@BOTH
def test_a_subclass_adds_fields(decorator: Decorator) -> None:
    base = point(decorator, frozen=True)

    body = {"__doc__": "Deeper.", "__annotations__": {"depth": "int"}, "depth": 0}
    kind = decorator(frozen=True, slots=True)(type("Deeper", (base,), body))
    value = kind(1, 2, [], "", 7)
    assert (value.x, value.depth) == (1, 7)
    assert value != kind(1, 2, [], "", 8)
    assert base(1) != kind(1)


@BOTH
def test_a_value_can_be_taken_apart_by_position(decorator: Decorator) -> None:
    kind = point(decorator)
    assert kind.__match_args__ == ("x", "y", "tags", "note")


@BOTH
def test_a_mutable_default_is_refused(decorator: Decorator) -> None:
    class Bad:
        """A value that would share a list."""

        a: list[int] = []  # noqa: RUF012 - the mistake under test

    with pytest.raises(ValueError, match="mutable default"):
        decorator(Bad)


def test_copies_and_pickles_are_equal() -> None:
    value = Pickled(1)
    assert copy.copy(value) == copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_an_ordered_class_is_the_standard_librarys() -> None:
    class Ordered:
        """A value with an order."""

        a: int

    kind: Any = lazy_dataclass(frozen=True, order=True)(Ordered)
    assert kind(1) < kind(2)
