"""The building blocks of layouts: numbers of variable length, strings, and rules that are checked.

A layout is a `Struct` of fields. Each field that `named` makes remembers which bytes it was read
from: the caller that reads the layout hands in a list as `trace`, and the field adds itself to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from construct import (
    Array,
    Byte,
    Bytes,
    CheckError,
    Computed,
    Construct,
    Container,
    ExprAdapter,
    FocusedSeq,
    IfThenElse,
    RepeatUntil,
    Struct,
    Tell,
    stream_tell,
    this,
)

from kvorum.inspection.layouts.field import Field

VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10

if TYPE_CHECKING:
    Layout: TypeAlias = Construct[Any, Any]
else:
    # The class has parameters for type checkers only.
    Layout = Construct


class _Named(Layout):
    """A field that adds itself to `trace`, a list that parse() was given."""

    def __init__(self, subcon: Layout) -> None:
        super().__init__()
        self._subcon = subcon

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        start = stream_tell(stream, path)
        value = self._subcon._parsereport(stream, context, path)
        trace = context._params.get("trace")
        if trace is not None:
            name = path.removeprefix("(parsing) -> ").replace(" -> ", ".")
            trace.append(Field(name, start, stream_tell(stream, path), value))
        return value


def named(**fields: Layout) -> Struct:
    """Return the layout that consists of these fields, in their order.

    A name that begins with an underscore is not a field but a rule, or a help for others.
    """
    return Struct(
        *(
            name / (subcon if name.startswith("_") else _Named(subcon))
            for name, subcon in fields.items()
        )
    )


def rule(problem: Callable[[Container[Any]], str | None]) -> Layout:
    """Return a rule between fields: `problem` says what is wrong with those read so far, or None.

    It takes up no bytes. Where it is broken, CheckError is raised with the problem; or, where
    parse() was given a list `broken`, the problem is added to it and reading goes on.
    """

    def checked(context: Container[Any]) -> None:
        found = problem(context)
        if found is None:
            return
        broken = context._params.get("broken")
        if broken is None:
            raise CheckError(found)
        broken.append(found)

    return Computed(checked)


HERE: Final = Tell
"""The position in the file, which takes up no bytes."""


def problem_of_end(part: Container[Any]) -> str | None:
    """Return what is wrong where a part, whose length counts from `_body`, ends at `_end`."""
    stated = part._body + part.length
    if stated != part._end:
        return f"ends at byte {part._end}, where its length says {stated}"
    return None


def _number(bytes_max: int, bits: int) -> Layout:
    """Return the layout of a number in groups of seven bits, the lowest first.

    Bits beyond the number's width are dropped, as Java's shifts do.
    """
    mask: int = 2**bits - 1

    def joined(read: list[int], _: object) -> int:
        if read[-1] > 0x7F:
            raise CheckError(f"a number of more than {bytes_max} bytes")
        number: int = sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(read))
        return number & mask

    def is_end(byte: int, read: list[int], _: object) -> bool:
        return byte < 0x80 or len(read) == bytes_max

    return ExprAdapter(RepeatUntil(is_end, Byte), joined, _not_written)


def _zigzag(number: Layout) -> Layout:
    """Return the layout of a number whose lowest bit is its sign."""
    return ExprAdapter(number, lambda value, _: (value >> 1) ^ -(value & 1), _not_written)


def _not_written(*_: object) -> NoReturn:
    raise NotImplementedError("layouts are for reading")


UNSIGNED_VARINT: Final = _number(VARINT_BYTES, 32)
VARINT: Final = _zigzag(UNSIGNED_VARINT)
VARLONG: Final = _zigzag(_number(VARLONG_BYTES, 64))
UUID: Final = Bytes(16)


def sized_bytes(length: Layout, *, may_be_null: bool = True) -> Layout:
    """Return the layout of bytes behind their length; a negative length stands for null."""
    null = Computed(None) if may_be_null else rule(lambda _: "null where bytes belong")
    return FocusedSeq(
        "content", length=length, content=IfThenElse(this.length < 0, null, Bytes(this.length))
    )


_COMPACT_LENGTH: Final = ExprAdapter(UNSIGNED_VARINT, lambda value, _: value - 1, _not_written)
COMPACT_STRING: Final = sized_bytes(_COMPACT_LENGTH, may_be_null=False)
"""A string of the flexible versions: its length plus one, and its bytes."""


def compact_array(item: Layout) -> Layout:
    """Return the layout of an array of the flexible versions: the count plus one, and the items."""
    return FocusedSeq("items", count=_COMPACT_LENGTH, items=Array(this.count, item))


_TAG: Final = Struct("tag" / UNSIGNED_VARINT, "content" / sized_bytes(UNSIGNED_VARINT))
TAGGED_FIELDS: Final = FocusedSeq("items", count=UNSIGNED_VARINT, items=Array(this.count, _TAG))
"""The end of a flexible version: fields that a reader need not know."""
