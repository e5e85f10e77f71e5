"""The two record files of a new directory: the first metadata, and the first voters."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path

from kvorum.metadata.bootstrap import BootstrapMetadata
from kvorum.metadata.record_frame import encode_record
from kvorum.node.format.dynamic_voters import DynamicVoter
from kvorum.storage.files import FileSystem
from kvorum.storage.metadata_log import bootstrap_checkpoint
from kvorum.wire.messages.voters_record import (
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordKRaftVersionFeature,
    VotersRecordVoter,
)

METADATA_PARTITION_DIRECTORY = "__cluster_metadata-0"
_KRAFT_VERSION_MAX = 1


def write_bootstrap_checkpoint(
    directory: Path, bootstrap: BootstrapMetadata, files: FileSystem, *, now_ms: int
) -> None:
    """Write the first metadata records into a data directory."""
    values = [encode_record(message, version) for message, version in bootstrap.records]
    bootstrap_checkpoint.write_bootstrap_checkpoint(directory, values, files, now_ms=now_ms)


def write_voters_checkpoint(
    directory: Path,
    voters: Mapping[int, DynamicVoter],
    files: FileSystem,
    *,
    listener_name: str,
    kraft_version: int,
    now_ms: int,
) -> None:
    """Write the first snapshot of a dynamic quorum below a data directory."""
    bootstrap_checkpoint.write_voters_checkpoint(
        directory / METADATA_PARTITION_DIRECTORY,
        files,
        kraft_version=kraft_version,
        voters=voters_record(voters, listener_name=listener_name),
        now_ms=now_ms,
    )


def voters_record(voters: Mapping[int, DynamicVoter], *, listener_name: str) -> VotersRecord:
    """Return the record that contains `voters`, each with an endpoint of the same listener."""
    return VotersRecord(voters=[_voter_fields(each, listener_name) for each in voters.values()])


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
    """Return the host as Java stores it: an IPv6 address as eight numbers, others unchanged."""
    try:
        address = IPv6Address(host)
    except AddressValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
