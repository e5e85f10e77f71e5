"""Which versions of the requests a simulated node speaks: that of this release, or older ones."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.wire.apis import API_SPECS
from kvorum.wire.messages.api_versions import (
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
    ApiVersionsResponseSupportedFeatureKey,
)
from kvorum.wire.primitives import Message

API_VERSIONS, FETCH, VOTE, BEGIN, END, DESCRIBE, FETCH_SNAPSHOT = 18, 1, 52, 53, 54, 55, 59
ADD_VOTER, REMOVE_VOTER, UPDATE_VOTER = 80, 81, 82


class Release(Enum):
    """A release of Kafka whose requests a node is limited to."""

    LATEST = "4.3"
    BEFORE_PRE_VOTE = "3.9"
    BEFORE_DIRECTORIES = "3.7"


_HIGHEST: Mapping[Release, Mapping[int, int]] = MappingProxyType(
    {
        Release.LATEST: {
            API_VERSIONS: 4,
            FETCH: 18,
            VOTE: 2,
            BEGIN: 1,
            END: 1,
            DESCRIBE: 2,
            FETCH_SNAPSHOT: 1,
            ADD_VOTER: 1,
            REMOVE_VOTER: 0,
            UPDATE_VOTER: 0,
        },
        Release.BEFORE_PRE_VOTE: {
            API_VERSIONS: 4,
            FETCH: 17,
            VOTE: 1,
            BEGIN: 1,
            END: 1,
            DESCRIBE: 2,
            FETCH_SNAPSHOT: 1,
            ADD_VOTER: 0,
            REMOVE_VOTER: 0,
            UPDATE_VOTER: 0,
        },
        Release.BEFORE_DIRECTORIES: {
            API_VERSIONS: 3,
            FETCH: 16,
            VOTE: 0,
            BEGIN: 0,
            END: 0,
            DESCRIBE: 1,
            FETCH_SNAPSHOT: 0,
        },
    }
)


def common_version(message: type[Message], one: Release, other: Release) -> int:
    """Return the highest version both speak; raises NoCommonVersionError."""
    key = -1 if message.API_KEY is None else message.API_KEY
    version = min(_HIGHEST[one].get(key, -1), _HIGHEST[other].get(key, -1), message.MAX_VERSION)
    if version < message.MIN_VERSION:
        raise NoCommonVersionError(f"{one.value} and {other.value} share no {message.NAME}")
    return version


def offered_versions(release: Release) -> ApiVersionsResponse:
    """Return what a node of a release answers to ApiVersions."""
    features = [ApiVersionsResponseSupportedFeatureKey("kraft.version", 0, 1)]
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponseApiVersion(key, API_SPECS[key].min_version, highest)
            for key, highest in _HIGHEST[release].items()
        ],
        supported_features=[] if release is Release.BEFORE_DIRECTORIES else features,
    )
