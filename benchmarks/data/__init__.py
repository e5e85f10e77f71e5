"""The data plane beside its peers, in parts that can be measured alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final

from benchmarks.data import fakes, many_clients, many_partitions, one_broker, three_brokers
from benchmarks.report import Row

PARTS: Final[Mapping[str, Callable[[], list[Row]]]] = MappingProxyType(
    {
        "one": one_broker.rows,
        "three": three_brokers.rows,
        "partitions": many_partitions.rows,
        "clients": many_clients.rows,
        "fakes": fakes.rows,
    }
)


def rows(parts: Collection[str]) -> list[Row]:
    """Return the rows of the parts with these names."""
    return [row for name, measured in PARTS.items() if name in parts for row in measured()]
