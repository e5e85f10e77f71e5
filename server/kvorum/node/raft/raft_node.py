"""One replica of the metadata log: the consensus core, its storage and its peers, driven."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from kvorum.node.raft.listener import RaftListener
from kvorum.node.raft.settings import Address, Clock, RaftSettings
from kvorum.storage.files import FileSystem
from kvorum.wire.primitives import Message


class RaftNode:
    """A voter or observer of the metadata quorum.

    Everything runs in the event loop that `start` was called in; syncs of the disk run in threads.
    """

    def __init__(
        self,
        settings: RaftSettings,
        *,
        listener: RaftListener,
        files: FileSystem,
        clock: Clock,
        random: Random,
    ) -> None:
        raise NotImplementedError

    async def start(self) -> None:
        """Open the directory, tell the listener the latest snapshot, and take part.

        Raises StorageError where the directory cannot be used. A lone voter begins to lead at once.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Hand over leadership, stop, and leave the directory clean. Closing twice is allowed."""
        raise NotImplementedError

    @property
    def epoch(self) -> int:
        """The current leader epoch."""
        raise NotImplementedError

    @property
    def leader_id(self) -> int | None:
        """Who leads in the current epoch, as far as is known; may be this node."""
        raise NotImplementedError

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the current epoch (its first batch may not be committed yet)."""
        raise NotImplementedError

    @property
    def high_watermark(self) -> int | None:
        """The offset below which everything is committed; None until that is known."""
        raise NotImplementedError

    @property
    def log_end_offset(self) -> int:
        """The offset the next record gets."""
        raise NotImplementedError

    @property
    def kraft_version(self) -> int:
        """The finalized kraft.version: 0 with static voters, 1 with a voter set in the log."""
        raise NotImplementedError

    def voter_ids(self) -> frozenset[int]:
        """Return the ids of the current voters."""
        raise NotImplementedError

    def leader_endpoint(self, listener_name: str | None = None) -> Address | None:
        """Return where the leader listens, by default under the controller listener."""
        raise NotImplementedError

    def propose(self, values: Sequence[bytes], *, epoch: int) -> int:
        """Append records in one batch and return the offset of the last one.

        The batch is committed, or lost with the leadership, as a whole; the listener hears of it.
        Raises NotLeaderError unless this node leads in `epoch`, ProposalTooLargeError above 8 MiB,
        RaftStoppedError.
        """
        raise NotImplementedError

    def resign(self, epoch: int) -> None:
        """Give up the leadership of `epoch`, if this node still has it."""
        raise NotImplementedError

    async def handle_request(self, request: Message, *, version: int, listener_name: str) -> Message:
        """Answer a request of a peer; a fetch may wait for records.

        Takes Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot and DescribeQuorum.
        `version` is the request's, `listener_name` the one it came in on.
        """
        raise NotImplementedError

    async def create_snapshot(
        self,
        *,
        end_offset: int,
        epoch: int,
        last_contained_log_timestamp_ms: int,
        values: Iterable[Sequence[bytes]],
    ) -> bool:
        """Write a snapshot of everything below `end_offset`; each item of `values` is a batch.

        False where there is one already, or the log starts behind it. `epoch` is that of the last
        record in it. `values` is consumed in another thread. Raises StorageError.
        """
        raise NotImplementedError

    async def clean_log(self) -> bool:
        """Drop snapshots and segments that retention allows to go; also runs every minute."""
        raise NotImplementedError
