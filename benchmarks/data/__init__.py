"""The data plane beside its peers, in parts that can be measured alone."""

from collections.abc import Callable, Collection

from benchmarks.data import fakes, many_groups, many_partitions, one_broker, requests, three_brokers
from benchmarks.report import Row


def rows(parts: Collection[str], *, divisor: int) -> list[Row]:
    """Return the rows of the parts with these names; `divisor` makes what is many fewer."""
    measured: dict[str, Callable[[], list[Row]]] = {
        "one": one_broker.rows,
        "three": three_brokers.rows,
        "partitions": lambda: many_partitions.rows(divisor),
        "requests": lambda: requests.rows(divisor),
        "groups": lambda: many_groups.rows(divisor),
        "fakes": fakes.rows,
    }
    return [row for name, part in measured.items() if name in parts for row in part()]
