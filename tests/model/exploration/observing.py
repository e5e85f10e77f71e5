"""Cores whose every verb is seen: what it was given, what it made of its state, and its effects."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from kvorum.raft import RaftCore
from kvorum.raft.effects import Effects
from kvorum.raft.messages import Request, RequestFailed, Response
from kvorum.raft.voter_set import ElectionRecord, ReplicaKey, VoterSet
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class Started(NamedTuple):
    """A process began on what its directory holds."""


class Ticked(NamedTuple):
    """A timer ran out."""


class Asked(NamedTuple):
    """A request came in."""

    request: Request
    token: int


class Heard(NamedTuple):
    """A response came in, or the failure of a request."""

    number: int
    response: Response | RequestFailed


class Proposed(NamedTuple):
    """So many records were proposed; none if it was another kraft.version."""

    record_count: int


class Synced(NamedTuple):
    """The log became durable."""

    end_offset: int


class Truncated(NamedTuple):
    """A truncation went further than it was asked to."""

    end_offset: int


class Installed(NamedTuple):
    """A fetched snapshot took the place of the log."""

    snapshot_id: OffsetAndEpoch


class StartMoved(NamedTuple):
    """The log's start moved, or there is one snapshot more or less."""


class Dismissed(NamedTuple):
    """A leader was asked to go, or a process to end."""


Event: TypeAlias = (
    Started
    | Ticked
    | Asked
    | Heard
    | Proposed
    | Synced
    | Truncated
    | Installed
    | StartMoved
    | Dismissed
)
Observer: TypeAlias = Callable[["ObservedCore", Event, Effects], None]


class ObservedCore(RaftCore):
    """A core that tells an observer of each verb, once that is done."""

    observer: Observer | None = None

    @property
    def own_key(self) -> ReplicaKey:
        """The node, and the directory it runs on."""
        return self._replica.own.key

    def _tell(self, event: Event, effects: Effects) -> Effects:
        if self.observer is not None:
            self.observer(self, event, effects)
        return effects

    def start(self, now: float, *, stored: ElectionRecord | None) -> Effects:
        return self._tell(Started(), super().start(now, stored=stored))

    def tick(self, now: float) -> Effects:
        return self._tell(Ticked(), super().tick(now))

    def receive(self, now: float, *, token: int, request: Request) -> Effects:
        return self._tell(Asked(request, token), super().receive(now, token=token, request=request))

    def receive_response(
        self, now: float, *, number: int, response: Response | RequestFailed
    ) -> Effects:
        effects = super().receive_response(now, number=number, response=response)
        return self._tell(Heard(number, response), effects)

    def propose(self, now: float, *, epoch: int, count: int) -> tuple[int, Effects]:
        offset, effects = super().propose(now, epoch=epoch, count=count)
        return offset, self._tell(Proposed(count), effects)

    def upgrade_kraft_version(
        self, now: float, *, epoch: int, kraft_version: int, validate_only: bool
    ) -> tuple[bool, Effects]:
        is_new, effects = super().upgrade_kraft_version(
            now, epoch=epoch, kraft_version=kraft_version, validate_only=validate_only
        )
        return is_new, self._tell(Proposed(0), effects)

    def log_durable(self, now: float, end_offset: int) -> Effects:
        return self._tell(Synced(end_offset), super().log_durable(now, end_offset))

    def log_truncated(self, now: float, end_offset: int) -> Effects:
        return self._tell(Truncated(end_offset), super().log_truncated(now, end_offset))

    def snapshot_installed(
        self,
        now: float,
        snapshot_id: OffsetAndEpoch,
        *,
        voters: VoterSet | None,
        kraft_version: int,
    ) -> Effects:
        effects = super().snapshot_installed(
            now, snapshot_id, voters=voters, kraft_version=kraft_version
        )
        return self._tell(Installed(snapshot_id), effects)

    def snapshot_refused(self, now: float, snapshot_id: OffsetAndEpoch) -> Effects:
        return self._tell(Ticked(), super().snapshot_refused(now, snapshot_id))

    def log_start_moved(self, start_offset: int, snapshots: Iterable[OffsetAndEpoch]) -> None:
        super().log_start_moved(start_offset, snapshots)
        self._tell(StartMoved(), Effects())

    def resign(self, now: float, *, epoch: int) -> Effects:
        return self._tell(Dismissed(), super().resign(now, epoch=epoch))

    def shutdown(self, now: float) -> Effects:
        return self._tell(Dismissed(), super().shutdown(now))
