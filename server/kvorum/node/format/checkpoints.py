"""The bootstrap snapshot of a new directory: its records, and the voters of a dynamic quorum."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path

from kvorum.metadata.bootstrap import BootstrapMetadata
from kvorum.metadata.record_frame import encode_record
from kvorum.node.format.dynamic_voters import DynamicVoter
from kvorum.storage.files import FileSystem
from kvorum.storage.metadata_log import bootstrap_checkpoint
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.wire.messages.voters_record import (
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordKRaftVersionFeature,
    VotersRecordVoter,
)

_KRAFT_VERSION_MAX = 1


def write_bootstrap_snapshot(
    directory: Path,
    bootstrap: BootstrapMetadata,
    voters: Mapping[int, DynamicVoter] | None,
    files: FileSystem,
    *,
    listener_name: str,
    kraft_version: int,
    now_ms: int,
) -> None:
    """Write the first snapshot of the metadata log below a data directory."""
    bootstrap_checkpoint.write_bootstrap_snapshot(
        directory / METADATA_LOG_DIRECTORY,
        files,
        values=[encode_record(message, version) for message, version in bootstrap.records],
        kraft_version=kraft_version,
        voters=None if voters is None else voters_record(voters, listener_name=listener_name),
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
