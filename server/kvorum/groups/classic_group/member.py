"""A member of a classic group (Kafka's ClassicGroupMember)."""

from collections.abc import Collection
from dataclasses import dataclass

from kvorum.groups.effects import JoinPromise, SyncPromise
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_groups import DescribeGroupsResponse


@dataclass(frozen=True, slots=True)
class SupportedProtocol:
    """A protocol that a member can take part in, with bytes that only members understand."""

    name: str
    metadata: bytes


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicGroupMember:
    """A member; `supported_protocols` are in its order of preference."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    supported_protocols: tuple[SupportedProtocol, ...]
    assignment: bytes = b""
    awaiting_join: JoinPromise | None = None
    awaiting_sync: SyncPromise | None = None
    is_new: bool = False
    """Whether it has not been in a generation yet: such a member may expire while it waits."""

    @property
    def is_static(self) -> bool:
        """Whether the member has an instance id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether the member is alive without heartbeats, because it waits for an answer."""
        if self.is_new:
            return False
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol: str | None) -> bytes:
        """Return the metadata for a protocol; refuses one that the member does not support."""
        for supported in self.supported_protocols:
            if supported.name == protocol:
                return supported.metadata
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def vote(self, candidates: Collection[str]) -> str:
        """Return the first of the member's protocols that is among the candidates."""
        for supported in self.supported_protocols:
            if supported.name in candidates:
                return supported.name
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def describe(self, protocol: str | None) -> DescribeGroupsResponse.DescribedGroupMember:
        """Return the member for DescribeGroups; without a protocol, its metadata is left out."""
        return DescribeGroupsResponse.DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )
