"""The effects that the core asks its driver for, as plain data.

Every verb of the core returns one `Effects`. Its `write`, if there is one, must be durable before
anything in `after_write` is done; the effects in `at_once` need not wait for it. Both are done in
order, and nothing of one verb before the writes of the verbs before it. Effects that depend on the
*log* being durable are not in here at all: `RaftCore.log_durable` returns them.
"""

from typing import NamedTuple, TypeAlias

from kvorum.raft.destination import Destination
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.messages import Request, Response
from kvorum.raft.voter_set import VoterSet
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class WriteElection(NamedTuple):
    """Store the election record durably, in the form that belongs to `kraft_version`."""

    record: ElectionRecord
    kraft_version: int
    voter_ids: tuple[int, ...]


class Send(NamedTuple):
    """Send a request; hand its response, or its failure, back under `number`."""

    number: int
    destination: Destination
    request: Request


class SendResponse(NamedTuple):
    """Answer the request that came in under `token`."""

    token: int
    response: Response


class AppendProposal(NamedTuple):
    """Append the proposed records, `record_count` of them, as one batch."""

    base_offset: int
    epoch: int
    record_count: int


class AppendEpochStart(NamedTuple):
    """Append the control batch that begins a leader's epoch.

    It holds LEADER_CHANGE and, where `voters` is given, KRAFT_VERSION and KRAFT_VOTERS.
    """

    base_offset: int
    epoch: int
    leader_id: int
    voter_ids: tuple[int, ...]
    granting_ids: tuple[int, ...]
    kraft_version: int
    voters: VoterSet | None


class AppendVoters(NamedTuple):
    """Append a control batch of KRAFT_VERSION, where that is given, and KRAFT_VOTERS."""

    base_offset: int
    epoch: int
    voters: VoterSet
    kraft_version: int | None = None


class AppendFetched(NamedTuple):
    """Append the first `batch_count` batches of the response under `number`."""

    number: int
    batch_count: int


class TruncateLog(NamedTuple):
    """Remove everything at `end_offset` and behind."""

    end_offset: int


class BeginDownload(NamedTuple):
    """Begin to store a fetched snapshot; drop one that was being fetched before."""

    snapshot_id: OffsetAndEpoch


class AppendDownload(NamedTuple):
    """Add the part of the snapshot that came in the response under `number`."""

    number: int


class DropDownload(NamedTuple):
    """Throw away the snapshot that was being fetched."""


class InstallDownload(NamedTuple):
    """Check and keep the fetched snapshot and begin the log again after it.

    The driver then reports the outcome by `RaftCore.snapshot_installed` or by
    `RaftCore.snapshot_refused`.
    """

    snapshot_id: OffsetAndEpoch


class Committed(NamedTuple):
    """Everything below `high_watermark` is committed."""

    high_watermark: int


class LeadershipGained(NamedTuple):
    """The replica leads, and the first batch of its epoch is committed."""

    epoch: int


class LeadershipLost(NamedTuple):
    """The replica does not lead `epoch` any more."""

    epoch: int


class LeaderChanged(NamedTuple):
    """The leader that the replica knows of, or the epoch, is another one."""

    leader_id: int | None
    epoch: int


class PeerRefused(NamedTuple):
    """A peer failed or sent an invalid response; for the log of the process."""

    destination: Destination
    reason: str


class ShutdownComplete(NamedTuple):
    """The replica has handed over and can be closed."""


Effect: TypeAlias = (
    Send
    | SendResponse
    | AppendProposal
    | AppendEpochStart
    | AppendVoters
    | AppendFetched
    | TruncateLog
    | BeginDownload
    | AppendDownload
    | DropDownload
    | InstallDownload
    | Committed
    | LeadershipGained
    | LeadershipLost
    | LeaderChanged
    | PeerRefused
    | ShutdownComplete
)


class Effects(NamedTuple):
    """The effects of one verb of the core."""

    at_once: tuple[Effect, ...] = ()
    write: WriteElection | None = None
    after_write: tuple[Effect, ...] = ()


class Outbox:
    """The effects of one verb while they are being collected."""

    def __init__(self) -> None:
        self._at_once: list[Effect] = []
        self._write: WriteElection | None = None
        self._after_write: list[Effect] = []

    def add(self, effect: Effect) -> None:
        """Add an effect; an effect after a write waits for it, since it may depend on it."""
        (self._at_once if self._write is None else self._after_write).append(effect)

    def write(self, write: WriteElection) -> None:
        """Ask for a durable write. A later one takes the place of an earlier one."""
        self._write = write

    def take(self) -> Effects:
        """Return what was collected and begin again."""
        effects = Effects(tuple(self._at_once), self._write, tuple(self._after_write))
        self._at_once, self._write, self._after_write = [], None, []
        return effects
