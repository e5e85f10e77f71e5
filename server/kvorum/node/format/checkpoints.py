"""The two record files of a new directory: what the cluster and its quorum start from."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path

from kvorum.metadata.bootstrap import BootstrapMetadata
from kvorum.metadata.record_frame import encode_record
from kvorum.node.format.dynamic_voters import DynamicVoter
from kvorum.storage.files import FileSystem, replace_durably
from kvorum.storage.names import BOOTSTRAP_SNAPSHOT_ID
from kvorum.storage.snapshots import RawSnapshotWriter
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.messages.voters_record import (
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordKRaftVersionFeature,
    VotersRecordVoter,
)
from kvorum.wire.records import (
    ControlRecord,
    ControlRecordType,
    build_control_batch,
    build_data_batch,
)

BOOTSTRAP_CHECKPOINT_FILE = "bootstrap.checkpoint"
METADATA_PARTITION_DIRECTORY = "__cluster_metadata-0"
_EPOCH = 0
_KRAFT_VERSION_MAX = 1
_FOOTER = ControlRecordType.SNAPSHOT_FOOTER


def bootstrap_checkpoint(bootstrap: BootstrapMetadata, *, timestamp_ms: int) -> bytes:
    """Return bootstrap.checkpoint: a header, the records in one batch, a footer."""
    values = [encode_record(message, version) for message, version in bootstrap.records]
    header = ControlRecord(ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord())
    footer = ControlRecord(_FOOTER, SnapshotFooterRecord())
    return b"".join(
        (
            _control_batch(header, base_offset=0, timestamp_ms=timestamp_ms),
            build_data_batch(values, base_offset=1, epoch=_EPOCH, timestamp_ms=timestamp_ms),
            _control_batch(footer, base_offset=1 + len(values), timestamp_ms=timestamp_ms),
        )
    )


def voters_checkpoint(
    voters: Mapping[int, DynamicVoter],
    *,
    listener_name: str,
    kraft_version: int,
    timestamp_ms: int,
) -> bytes:
    """Return the first snapshot of a dynamic quorum: kraft.version and the voters."""
    opening = (
        ControlRecord(
            ControlRecordType.SNAPSHOT_HEADER,
            SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms),
        ),
        ControlRecord(
            ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(k_raft_version=kraft_version)
        ),
        ControlRecord(
            ControlRecordType.KRAFT_VOTERS,
            VotersRecord(voters=[_voter_fields(each, listener_name) for each in voters.values()]),
        ),
    )
    footer = ControlRecord(_FOOTER, SnapshotFooterRecord())
    return b"".join(
        (
            _control_batch(*opening, base_offset=0, timestamp_ms=timestamp_ms),
            _control_batch(footer, base_offset=len(opening), timestamp_ms=timestamp_ms),
        )
    )


def write_bootstrap_checkpoint(
    directory: Path, bootstrap: BootstrapMetadata, files: FileSystem, *, timestamp_ms: int
) -> None:
    """Put bootstrap.checkpoint into a data directory."""
    data = bootstrap_checkpoint(bootstrap, timestamp_ms=timestamp_ms)
    replace_durably(files, directory / BOOTSTRAP_CHECKPOINT_FILE, data)


def write_voters_checkpoint(directory: Path, data: bytes, files: FileSystem) -> None:
    """Put the first snapshot into the metadata partition's folder of a data directory."""
    partition = directory / METADATA_PARTITION_DIRECTORY
    writer = RawSnapshotWriter(partition, BOOTSTRAP_SNAPSHOT_ID, files=files)
    try:
        writer.append(data)
        writer.freeze()
    finally:
        writer.abort()


def _control_batch(*records: ControlRecord, base_offset: int, timestamp_ms: int) -> bytes:
    return build_control_batch(
        records, base_offset=base_offset, epoch=_EPOCH, timestamp_ms=timestamp_ms
    )


def _voter_fields(voter: DynamicVoter, listener_name: str) -> VotersRecordVoter:
    return VotersRecordVoter(
        voter_id=voter.node_id,
        voter_directory_id=voter.directory_id,
        endpoints=[
            VotersRecordEndpoint(
                name=listener_name.upper(), host=_java_host(voter.host), port=voter.port
            )
        ],
        k_raft_version_feature=VotersRecordKRaftVersionFeature(0, _KRAFT_VERSION_MAX),
    )


def _java_host(host: str) -> str:
    """Return the host as Java keeps it: an IPv6 address as eight numbers, anything else as is."""
    try:
        address = IPv6Address(host)
    except AddressValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
