"""The APIs and metadata records of Kafka, and their message classes.

The facts come from the schemas. A class is imported when it is first requested, so that a program
loads only the messages that it uses.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.api_table import API_ROWS, MODULES, RECORD_ROWS

if TYPE_CHECKING:
    from kvorum.wire.primitives import Message

METADATA_RECORDS: Mapping[int, str] = MappingProxyType({row[0]: row[1] for row in RECORD_ROWS})
"""The names of the metadata records by their types."""


class ApiSpec(NamedTuple):
    """One API: its key, its versions, and the listeners that serve it.

    `flexible_from` is the first version with compact encodings, 32768 if none has them.
    `listeners` holds `broker`, `controller` or both. With `is_latest_version_unstable`, the highest
    version is not offered unless unstable APIs are enabled.
    """

    key: ApiKey
    name: str
    module: str
    min_version: int
    max_version: int
    flexible_from: int
    listeners: tuple[str, ...]
    is_latest_version_unstable: bool

    @property
    def max_stable_version(self) -> int:
        """The highest version that is offered by default; below `min_version` if none is."""
        return self.max_version - self.is_latest_version_unstable

    @property
    def min_listed_version(self) -> int:
        """The lowest version that ApiVersions lists, which may be lower than the lowest one served.

        Produce is listed from version 0 on, although no broker serves that version any more:
        clients built on librdkafka misread a list without it (KAFKA-18659).
        """
        return 0 if self.key is ApiKey.PRODUCE else self.min_version


API_SPECS: Mapping[int, ApiSpec] = MappingProxyType(
    {spec.key: spec for spec in (ApiSpec(ApiKey(row[0]), *row[1:]) for row in API_ROWS)}
)


@cache
def message_class(name: str) -> type[Message]:
    """Return the class of the message called `name`; `KeyError` without one."""
    module = importlib.import_module(f"kvorum.wire.messages.{MODULES[name]}")
    found: type[Message] = getattr(module, name)
    return found


def request_class(key: int) -> type[Message]:
    """Return the request class of an API key; `KeyError` if it is unknown."""
    return message_class(f"{API_SPECS[key].name}Request")


def response_class(key: int) -> type[Message]:
    """Return the response class of an API key; `KeyError` if it is unknown."""
    return message_class(f"{API_SPECS[key].name}Response")


def record_class(key: int) -> type[Message]:
    """Return the class of a record of the cluster metadata log; `KeyError` if it is unknown."""
    return message_class(METADATA_RECORDS[key])
