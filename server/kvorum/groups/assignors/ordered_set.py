"""A frozen set that keeps the order in which its elements were given."""

from collections.abc import Iterable, Iterator
from typing import Self, TypeVar

Element_co = TypeVar("Element_co", covariant=True)


class OrderedSet(frozenset[Element_co]):
    """A frozen set that is iterated in the order given; equality and hash disregard the order."""

    __slots__ = ("_order",)

    _order: tuple[Element_co, ...]

    def __new__(cls, elements: Iterable[Element_co] = ()) -> Self:
        """Make a set of the elements; of equal ones the first counts."""
        order = tuple(dict.fromkeys(elements))
        made = super().__new__(cls, order)
        made._order = order
        return made

    def __iter__(self) -> Iterator[Element_co]:
        """Yield the elements in the order given."""
        return iter(self._order)
