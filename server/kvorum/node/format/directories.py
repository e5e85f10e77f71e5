"""The formatting itself: every directory is checked, then the new ones are written."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from kvorum.metadata.bootstrap import (
    BootstrapMetadata,
    bootstrap_from_features,
    bootstrap_from_records,
)
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.features import FEATURES, KRAFT_VERSION_FEATURE, check_dependencies
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    LATEST_TESTING_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    MetadataVersion,
    metadata_version_from_level,
)
from kvorum.metadata.record_frame import RecordAndVersion, encode_record
from kvorum.node.errors import FormatError
from kvorum.node.format.dynamic_voters import DynamicVoter, voters_record
from kvorum.node.format.scram import parse_scram_credential
from kvorum.storage.errors import DiskError, StorageError
from kvorum.storage.files import FileSystem, disk_errors
from kvorum.storage.metadata_log.bootstrap_checkpoint import write_bootstrap_snapshot
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.meta_properties import (
    MetaProperties,
    MetaPropertiesEnsemble,
    draw_directory_id,
    read_meta_properties,
    write_meta_properties,
)
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord

_NEEDED_FLAGS = "one of the flags --standalone, --initial-controllers, or --no-initial-controllers"
_SOURCE = "format command"


def effective_release_version(
    release_version: MetadataVersion | None, levels: Mapping[str, int], *, enable_unstable: bool
) -> MetadataVersion:
    """Return the requested metadata.version, or the latest; FormatError if it is not allowed."""
    if METADATA_VERSION_FEATURE in levels:
        if release_version is not None:
            raise FormatError(
                "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
            )
        release_version = _known_version(levels[METADATA_VERSION_FEATURE])
    if release_version is None:
        if enable_unstable:
            return LATEST_TESTING_METADATA_VERSION
        return LATEST_PRODUCTION_METADATA_VERSION
    if not enable_unstable and not release_version.is_production:
        raise FormatError(f"metadata.version {release_version.text} is not yet stable.")
    return release_version


def effective_feature_levels(
    levels: Mapping[str, int], release_version: MetadataVersion, *, has_dynamic_quorum: bool
) -> dict[str, int]:
    """Return the level of every feature by name, metadata.version included."""
    known = {feature.name: feature for feature in FEATURES}
    for name in sorted(levels):
        if name != METADATA_VERSION_FEATURE and name not in known:
            supported = ", ".join(sorted(known))
            raise FormatError(f"Unsupported feature: {name}. Supported features are: {supported}")
    wanted = {**levels, METADATA_VERSION_FEATURE: int(release_version)}
    for feature in FEATURES:
        if feature.name == KRAFT_VERSION_FEATURE:
            wanted[feature.name] = _kraft_version(
                levels.get(feature.name), has_dynamic_quorum=has_dynamic_quorum
            )
        else:
            wanted.setdefault(feature.name, feature.default_level(release_version))
    _check_levels(wanted)
    return dict(sorted(wanted.items()))


def _known_version(level: int) -> MetadataVersion:
    try:
        return metadata_version_from_level(level)
    except UnknownFeatureError as error:
        raise FormatError(str(error)) from error


def _check_levels(wanted: Mapping[str, int]) -> None:
    for name in sorted(wanted):
        if name == METADATA_VERSION_FEATURE:
            continue
        try:
            check_dependencies(name, wanted[name], wanted)
        except UnknownFeatureError as error:
            raise FormatError(str(error)) from error


def _kraft_version(given: int | None, *, has_dynamic_quorum: bool) -> int:
    """Return 1 for a dynamic quorum and 0 for a static one; FormatError for another request."""
    if given is None:
        return int(has_dynamic_quorum)
    if given == 0 and has_dynamic_quorum:
        raise FormatError(
            f"Cannot set kraft.version to 0 if controller.quorum.voters is empty and "
            f"{_NEEDED_FLAGS} is used. For dynamic controllers support, try removing the --feature "
            "flag for kraft.version."
        )
    if given != 0 and not has_dynamic_quorum:
        raise FormatError(
            f"Cannot set kraft.version to {given} unless controller.quorum.voters is empty and "
            f"{_NEEDED_FLAGS} is used. For dynamic controllers support, try using one of "
            "--standalone, --initial-controllers, or --no-initial-controllers and removing "
            "controller.quorum.voters."
        )
    return given


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
    feature_levels: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
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


def bootstrap_metadata_text(bootstrap: BootstrapMetadata) -> str:
    """Return the line of the storage tool that shows a new cluster's first records."""
    records = ", ".join(map(_record_text, bootstrap.records))
    return (
        f"BootstrapMetadata(records=[{records}], "
        f"metadataVersionLevel={int(bootstrap.metadata_version)}, source={bootstrap.source})"
    )


def _record_text(record: RecordAndVersion) -> str:
    message, version = record
    match message:
        case FeatureLevelRecord():
            fields = f"name='{message.name}', featureLevel={message.feature_level}"
        case UserScramCredentialRecord():
            fields = (
                f"name='{message.name}', mechanism={message.mechanism}, "
                f"salt={_bytes_text(message.salt)}, storedKey={_bytes_text(message.stored_key)}, "
                f"serverKey={_bytes_text(message.server_key)}, iterations={message.iterations}"
            )
        case _:
            raise TypeError(f"{type(message).__name__} is no bootstrap record")
    return f"ApiMessageAndVersion({type(message).__name__}({fields}) at version {version})"


def _bytes_text(data: bytes) -> str:
    """Return bytes as Java prints a byte array: signed numbers."""
    return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in data)}]"


@dataclass(slots=True)
class _Directories:
    """The directories by their content: formatted, new or unreadable; each in order of name."""

    formatted: dict[str, MetaProperties]
    empty: list[str]
    unreadable: list[str]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The content of every new directory."""

    request: FormatRequest
    bootstrap: BootstrapMetadata
    release_version: MetadataVersion
    kraft_version: int


def format_directories(
    request: FormatRequest,
    *,
    files: FileSystem,
    random_source: random.Random,
    now: datetime,
    report: Callable[[str], None],
) -> None:
    """Format the directories that are not formatted yet, and `report` each step in a line.

    Everything is checked before anything is written. Raises FormatError, or StorageError if an
    existing directory contradicts the request.
    """
    plan = _make_plan(request, random_source)
    found = _look(request.directories, files)
    _verify(found, request)
    if found.formatted and not request.ignore_formatted:
        first = next(iter(found.formatted))
        raise FormatError(
            f"Log directory {first} is already formatted. Use --ignore-formatted to ignore this "
            "directory and format the others."
        )
    for directory in found.unreadable:
        report(f"I/O error trying to read log directory {directory}. Ignoring...")
    if found.unreadable and not found.empty and not found.formatted:
        raise FormatError("No available log directories to format.")
    if not found.empty:
        report("All of the log directories are already formatted.")
        return
    report(f"Bootstrap metadata: {bootstrap_metadata_text(plan.bootstrap)}")
    taken = {properties.directory_id for properties in found.formatted.values()}
    for directory in found.empty:
        kind = directory_type(directory, request)
        directory_id = _directory_id(kind, request, random_source, taken)
        taken.add(directory_id)
        report(
            f"Formatting {kind.value} {directory} with metadata.version "
            f"{plan.release_version.text}."
        )
        _format_one(Path(directory), kind, plan, directory_id=directory_id, files=files, now=now)


def _make_plan(request: FormatRequest, random_source: random.Random) -> _Plan:
    release_version = effective_release_version(
        request.release_version,
        request.feature_levels,
        enable_unstable=request.enable_unstable_features,
    )
    levels = effective_feature_levels(
        request.feature_levels, release_version, has_dynamic_quorum=request.has_dynamic_quorum
    )
    features = bootstrap_from_features(release_version, levels, source=_SOURCE)
    if request.scram_arguments and release_version < MetadataVersion.V3_5_IV2:
        raise FormatError(
            f"SCRAM is only supported in metadata.version {MetadataVersion.V3_5_IV2.text} or later."
        )
    credentials = [
        (parse_scram_credential(argument, random_source=random_source), 0)
        for argument in request.scram_arguments
    ]
    return _Plan(
        request=request,
        bootstrap=bootstrap_from_records([*features.records, *credentials], source=_SOURCE),
        release_version=release_version,
        kraft_version=levels[KRAFT_VERSION_FEATURE],
    )


def _look(directories: tuple[str, ...], files: FileSystem) -> _Directories:
    found = _Directories(formatted={}, empty=[], unreadable=[])
    for directory in sorted(set(directories)):
        try:
            properties = read_meta_properties(Path(directory), files)
        except StorageError:
            found.unreadable.append(directory)
            continue
        if properties is None:
            found.empty.append(directory)
        else:
            found.formatted[directory] = properties
    return found


def _verify(found: _Directories, request: FormatRequest) -> None:
    """Check that the formatted directories belong to this node and cluster."""
    ensemble = MetaPropertiesEnsemble(
        metadata_directory=Path(request.metadata_directory),
        properties=MappingProxyType({Path(name): each for name, each in found.formatted.items()}),
    )
    ensemble.verify(expected_cluster_id=request.cluster_id, expected_node_id=request.node_id)


def _directory_id(
    kind: DirectoryType,
    request: FormatRequest,
    random_source: random.Random,
    taken: set[bytes | None],
) -> bytes:
    if kind is DirectoryType.DYNAMIC_METADATA_VOTER:
        assert request.initial_controllers is not None
        return request.initial_controllers[request.node_id].directory_id
    return draw_directory_id(random_source, taken)


def _format_one(
    directory: Path,
    kind: DirectoryType,
    plan: _Plan,
    *,
    directory_id: bytes,
    files: FileSystem,
    now: datetime,
) -> None:
    """Write a directory's files; meta.properties comes last and marks a complete directory."""
    request = plan.request
    now_ms = int(now.timestamp() * 1000)
    properties = MetaProperties(
        cluster_id=request.cluster_id, node_id=request.node_id, directory_id=directory_id
    )
    try:
        with disk_errors(directory, "creating"):
            files.make_directory(directory)
        if request.is_controller and kind is not DirectoryType.DATA:
            voters, listener_name = request.initial_controllers, request.controller_listener_name
            write_bootstrap_snapshot(
                directory / METADATA_LOG_DIRECTORY,
                files,
                values=[encode_record(message, level) for message, level in plan.bootstrap.records],
                kraft_version=plan.kraft_version,
                voters=None
                if voters is None
                else voters_record(voters, listener_name=listener_name),
                now_ms=now_ms,
            )
        write_meta_properties(directory, properties, files, now=now)
    except DiskError as error:
        raise FormatError(
            f"Error while writing meta.properties file {directory}: {error}"
        ) from error
