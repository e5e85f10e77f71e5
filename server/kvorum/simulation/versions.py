"""The request versions of a simulated node: those of this release, or of an older one."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.primitives import Message


class Release(Enum):
    """A release of Kafka whose requests a node is limited to."""

    LATEST = "4.3"
    BEFORE_PRE_VOTE = "3.9"
    BEFORE_DIRECTORIES = "3.7"


_HIGHEST: Mapping[Release, Mapping[int, int]] = MappingProxyType(
    {
        Release.LATEST: {
            ApiKey.API_VERSIONS: 4,
            ApiKey.FETCH: 18,
            ApiKey.VOTE: 2,
            ApiKey.BEGIN_QUORUM_EPOCH: 1,
            ApiKey.END_QUORUM_EPOCH: 1,
            ApiKey.DESCRIBE_QUORUM: 2,
            ApiKey.FETCH_SNAPSHOT: 1,
            ApiKey.ADD_RAFT_VOTER: 1,
            ApiKey.REMOVE_RAFT_VOTER: 0,
            ApiKey.UPDATE_RAFT_VOTER: 0,
        },
        Release.BEFORE_PRE_VOTE: {
            ApiKey.API_VERSIONS: 4,
            ApiKey.FETCH: 17,
            ApiKey.VOTE: 1,
            ApiKey.BEGIN_QUORUM_EPOCH: 1,
            ApiKey.END_QUORUM_EPOCH: 1,
            ApiKey.DESCRIBE_QUORUM: 2,
            ApiKey.FETCH_SNAPSHOT: 1,
            ApiKey.ADD_RAFT_VOTER: 0,
            ApiKey.REMOVE_RAFT_VOTER: 0,
            ApiKey.UPDATE_RAFT_VOTER: 0,
        },
        Release.BEFORE_DIRECTORIES: {
            ApiKey.API_VERSIONS: 3,
            ApiKey.FETCH: 16,
            ApiKey.VOTE: 0,
            ApiKey.BEGIN_QUORUM_EPOCH: 0,
            ApiKey.END_QUORUM_EPOCH: 0,
            ApiKey.DESCRIBE_QUORUM: 1,
            ApiKey.FETCH_SNAPSHOT: 0,
        },
    }
)


def common_version(message: type[Message], one: Release, other: Release) -> int:
    """Return the highest version that both releases support; raise NoCommonVersionError."""
    key = -1 if message.API_KEY is None else message.API_KEY
    version = min(_HIGHEST[one].get(key, -1), _HIGHEST[other].get(key, -1), message.MAX_VERSION)
    if version < message.MIN_VERSION:
        raise NoCommonVersionError(f"{one.value} and {other.value} share no {message.NAME}")
    return version


def offered_versions(release: Release) -> ApiVersionsResponse:
    """Return the response of a node of a release to ApiVersions."""
    features = [ApiVersionsResponse.SupportedFeatureKey("kraft.version", 0, 1)]
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(key, API_SPECS[key].min_version, highest)
            for key, highest in _HIGHEST[release].items()
        ],
        supported_features=[] if release is Release.BEFORE_DIRECTORIES else features,
    )
