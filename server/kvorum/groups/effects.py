"""The effects of a shard besides its records: timers, and promises that are kept."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeAlias, TypeVar

from kvorum.wire.messages.join_group import JoinGroupResponse
from kvorum.wire.messages.sync_group import SyncGroupResponse

FIRST_VERSION_WITH_NULL_PROTOCOL_NAME: Final = 7


Response = TypeVar("Response")


@dataclass(slots=True, eq=False)
class Promise(Generic[Response]):
    """The answer of one request, which may come from a later result; `then` takes it.

    As in Kafka, a promise that another request of the same member has replaced is never kept.
    """

    then: Callable[[Response], None]
    is_kept: bool = False


@dataclass(slots=True, eq=False)
class JoinPromise(Promise[JoinGroupResponse]):
    """The answer of a JoinGroup request of a `version`."""

    version: int = field(kw_only=True)


SyncPromise: TypeAlias = Promise[SyncGroupResponse]


@dataclass(frozen=True, slots=True)
class Answer(Generic[Response]):
    """A response that may be sent."""

    promise: Promise[Response]
    response: Response

    def send(self) -> None:
        """Hand the response to the one who waits for it."""
        self.promise.then(self.response)


AnyAnswer: TypeAlias = Answer[JoinGroupResponse] | Answer[SyncGroupResponse]


@dataclass(frozen=True, slots=True)
class MemberHeartbeat:
    """A member of a classic group has not been heard of for its session."""

    group_id: str
    member_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return heartbeat_key(self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class JoinPhase:
    """The members of a classic group have had their time to join."""

    group_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return join_key(self.group_id)


@dataclass(frozen=True, slots=True)
class InitialJoinPhase:
    """The delay of a first rebalance is over; it may be extended by what remains."""

    group_id: str
    delay_ms: int
    remaining_ms: int

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return join_key(self.group_id)


@dataclass(frozen=True, slots=True)
class SyncPhase:
    """The members of a generation have had their time to sync."""

    group_id: str
    generation_id: int

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return sync_key(self.group_id)


@dataclass(frozen=True, slots=True)
class GroupMetadataExpiration:
    """Offsets and groups have to be looked through for expired ones."""

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return "expire-group-metadata"


Timeout: TypeAlias = (
    MemberHeartbeat | JoinPhase | InitialJoinPhase | SyncPhase | GroupMetadataExpiration
)


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Hand `timeout` to the shard after `delay_ms`; a timer with the same key is replaced."""

    timeout: Timeout
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Drop the timer with this key, if there is one."""

    key: str


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects that are due at once, in this order."""

    timers: tuple[SetTimer | CancelTimer, ...] = ()
    answers: tuple[AnyAnswer, ...] = ()


@dataclass(slots=True)
class Outbox:
    """Gathers the effects of one call."""

    _timers: list[SetTimer | CancelTimer] = field(default_factory=list[SetTimer | CancelTimer])
    _answers: list[AnyAnswer] = field(default_factory=list[AnyAnswer])

    def set_timer(self, timeout: Timeout, delay_ms: int) -> None:
        """Set or replace a timer."""
        self._timers.append(SetTimer(timeout, delay_ms))

    def cancel_timer(self, key: str) -> None:
        """Cancel a timer, which may not be there."""
        self._timers.append(CancelTimer(key))

    def answer_join(self, promise: JoinPromise, response: JoinGroupResponse) -> None:
        """Keep a promise, unless it has been kept."""
        if not promise.is_kept:
            promise.is_kept = True
            # Version 7 made the name nullable; an empty one is not sent from then on.
            has_null_name = promise.version >= FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
            response.protocol_name = response.protocol_name or (None if has_null_name else "")
            self._answers.append(Answer(promise, response))

    def answer_sync(self, promise: SyncPromise, response: SyncGroupResponse) -> None:
        """Keep a promise, unless it has been kept."""
        if not promise.is_kept:
            promise.is_kept = True
            self._answers.append(Answer(promise, response))

    def take(self) -> Effects:
        """Return what was gathered, and begin again."""
        effects = Effects(tuple(self._timers), tuple(self._answers))
        self._timers.clear()
        self._answers.clear()
        return effects


def heartbeat_key(group_id: str, member_id: str) -> str:
    """Return the key of a member's session timer."""
    return f"heartbeat-{group_id}-{member_id}"


def join_key(group_id: str) -> str:
    """Return the key of the timer of a join phase."""
    return f"join-{group_id}"


def sync_key(group_id: str) -> str:
    """Return the key of the timer of a sync phase."""
    return f"sync-{group_id}"
