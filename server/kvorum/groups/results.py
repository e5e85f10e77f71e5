"""The state of a shard, and the result of a request or a timeout: records, an answer, effects.

Members get errors of their own when a record of their group could not be appended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Generic, Protocol, TypeVar

from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.effects import Effects, Outbox
from kvorum.groups.records import CoordinatorRecord
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.groups.timeline import Timeline, TimelineMap
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

Response_co = TypeVar("Response_co", covariant=True)
_ANSWERS: Final[Mapping[ErrorCode, ErrorCode]] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class ShardState:
    """The groups of a shard, their timeline, and the effects of the present call."""

    def __init__(self, settings: GroupCoordinatorSettings, new_uuid: Callable[[], str]) -> None:
        self.settings = settings
        self.new_uuid = new_uuid
        """Makes the random part of a member id: a UUID as 36 characters with dashes."""
        self.timeline = Timeline()
        self.outbox = Outbox()
        self.groups = TimelineMap[str, ClassicGroup](self.timeline)
        self.groups_of_other_protocols: set[str] = set()
        """The ids of consumer, share and streams groups, which only a real broker coordinates.

        The records of such a group are read when the log is loaded, and never written here.
        """

    def demand_classic(self, group_id: str) -> None:
        """Refuse a group of another protocol with NOT_COORDINATOR.

        Its clients then wait until a broker leads the partition that serves the protocol.
        """
        if group_id in self.groups_of_other_protocols:
            raise RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)

    def group(self, group_id: str, epoch: int | None = None) -> ClassicGroup:
        """Return a group; refuses the id of none with GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id, epoch)
        if group is None:
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def get_or_create_group(self, group_id: str, now_ms: int) -> ClassicGroup:
        """Return a group; one that does not exist is made in memory at `now_ms`."""
        group = self.groups.get(group_id)
        if group is None:
            group = ClassicGroup(group_id=group_id, current_state_timestamp=now_ms)
            self.groups.set(group_id, group)
        return group


class Append(Protocol):
    """The consequence in a group of records that are committed, or are not."""

    def completed(self, now_ms: int, /) -> None:
        """Act on the records being committed."""
        ...

    def failed(self, error: ErrorCode, now_ms: int, /) -> None:
        """Act on the records not being in the log, or not in time."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a group: records, and what follows on their append."""

    records: tuple[CoordinatorRecord, ...] = ()
    append: Append | None = None


NO_DECISION = Decision()


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorResult(Generic[Response_co]):
    """The result of a request or a timeout in a shard; the package's docstring says what to do.

    `response` is None where promises carry the answer, and where `error` refuses the request.
    Records that are not atomic may be spread over several batches.
    """

    effects: Effects
    response: Response_co | None = None
    error: RequestError | None = None
    records: tuple[CoordinatorRecord, ...] = ()
    append: Append | None = None
    replay_records: bool = True
    is_atomic: bool = True


def append_error_to_response_error(error: ErrorCode) -> ErrorCode:
    """Return the code that a client understands for an error of the log."""
    return _ANSWERS.get(error, error)


def append_error_to_transactional_error(error: ErrorCode) -> ErrorCode:
    """Return the code for TxnOffsetCommit, for an error of the log or of the verification.

    Older clients do not repeat a request upon NETWORK_EXCEPTION, which is that of a coordinator of
    transactions that did not answer.
    """
    if error is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return append_error_to_response_error(error)


def append_error_to_fetch_error(error: ErrorCode) -> ErrorCode:
    """Return the code for OffsetFetch, whose older clients do not repeat a request upon others."""
    answered = append_error_to_response_error(error)
    is_other = answered is ErrorCode.COORDINATOR_NOT_AVAILABLE and answered is not error
    return ErrorCode.NOT_COORDINATOR if is_other else answered
