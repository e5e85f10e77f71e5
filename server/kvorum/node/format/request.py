"""The request to format directories, and the types of directories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.node.format.dynamic_voters import DynamicVoter


def _no_levels() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatRequest:
    """The directories of one node, and the cluster that they will belong to.

    `directories` and `metadata_directory` are texts of the configuration. The metadata directory of
    a node that is a controller gets the bootstrap snapshot. `initial_controllers`
    are the first voters of a dynamic quorum, None if the request does not name them.
    `feature_levels` and `release_version` are only the requested ones, without defaults.
    """

    node_id: int
    cluster_id: str
    directories: tuple[str, ...]
    metadata_directory: str
    controller_listener_name: str
    is_controller: bool
    has_dynamic_quorum: bool
    initial_controllers: Mapping[int, DynamicVoter] | None = None
    release_version: MetadataVersion | None = None
    feature_levels: Mapping[str, int] = field(default_factory=_no_levels)
    scram_arguments: tuple[str, ...] = ()
    ignore_formatted: bool = False
    enable_unstable_features: bool = False


class DirectoryType(Enum):
    """The type of a directory; the value is the name in Kafka's output."""

    DATA = "data directory"
    STATIC_METADATA = "metadata directory"
    DYNAMIC_METADATA = "dynamic metadata directory"
    DYNAMIC_METADATA_VOTER = "dynamic metadata voter directory"


def directory_type(directory: str, request: FormatRequest) -> DirectoryType:
    """Return the type that `directory` is formatted as."""
    if directory != request.metadata_directory:
        return DirectoryType.DATA
    if request.initial_controllers is None:
        return DirectoryType.STATIC_METADATA
    if request.node_id in request.initial_controllers:
        return DirectoryType.DYNAMIC_METADATA_VOTER
    return DirectoryType.DYNAMIC_METADATA
