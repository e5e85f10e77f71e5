"""Nodes that only the properties see, with whatever role, log and watermark a test wants."""

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from tests.support.batch_maker import make_batch

from kvorum.node.raft.settings import RaftSettings
from kvorum.node.raft.translation import fetch
from kvorum.raft import RaftCore, ReplicaKey
from kvorum.raft import messages as core
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.endpoints import Endpoint
from kvorum.raft.log_view import LogView
from kvorum.raft.roles import Follower, Leader, Role, Unattached
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.simulation.disk import MountedDisk, SimulatedDisk
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.simulation.properties.watch import Properties
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.small_files.quorum_state import QuorumState, QuorumStateFile
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

CLUSTER_ID = "QP3oa5oOQxCSVFlV2ZtYOg"
HERE = Path("/node/__cluster_metadata-0")
LISTENER = "CONTROLLER"
FETCH_VERSION = 17
EMPTY_LOG = OffsetAndEpoch(0, 0)


def directory_id(node_id: int) -> bytes:
    return node_id.to_bytes(16)


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory_id(node_id))


def endpoint_of(node_id: int) -> Endpoint:
    return Endpoint(LISTENER, f"node-{node_id}", 9093)


def voters_of(ids: Iterable[int]) -> VoterSet:
    return VoterSet.of(Voter(key_of(one), (endpoint_of(one),), 0, 1) for one in ids)


def fetch_request(
    node_id: int, *, position: OffsetAndEpoch = EMPTY_LOG, bytes_max: int = 1_000
) -> FetchRequest:
    asked = core.FetchRequest(
        replica=key_of(node_id),
        epoch=1,
        position=position,
        max_wait_ms=0,
        bytes_max=bytes_max,
        high_watermark=None,
    )
    return fetch.write_request(asked, cluster_id=CLUSTER_ID, version=FETCH_VERSION)


class PretendedCore(RaftCore):
    """A core in the state that a test sets."""

    def __init__(self, key: ReplicaKey, voters: VoterSet) -> None:
        self.own_key = key
        self.shown_role: Role = Unattached(0, election_deadline=0.0)
        self.shown_log = LogView()
        self.shown_history = VoterSetHistory(static=voters)
        self.shown_high_watermark: int | None = None
        self.are_shown_voters_committed = True

    @property
    def role(self) -> Role:
        return self.shown_role

    @property
    def log(self) -> LogView:
        return self.shown_log

    @property
    def history(self) -> VoterSetHistory:
        return self.shown_history

    @property
    def high_watermark(self) -> int | None:
        return self.shown_high_watermark

    @property
    def are_voters_committed(self) -> bool:
        return self.are_shown_voters_committed

    @property
    def is_voter(self) -> bool:
        return self.history.voters.is_voter(self.own_key)


class PretendedNode:
    """A node with a real log on a simulated disk, and a core that is pretended."""

    def __init__(self, node_id: int, properties: Properties, voters: Iterable[int]) -> None:
        self.node_id = node_id
        self.directory_id = directory_id(node_id)
        self.settings = RaftSettings(
            node_id=node_id,
            cluster_id=CLUSTER_ID,
            directory_id=self.directory_id,
            directory=HERE,
            can_vote=True,
            controller_listener=LISTENER,
        )
        self.disk = SimulatedDisk(Random(node_id))
        self.files: MountedDisk = self.disk.mount()
        self.start_count = 1
        self.voters = voters_of(voters)
        self.own_core = PretendedCore(key_of(node_id), self.voters)
        self.core: RaftCore | None = self.own_core
        self.own_log = MetadataLog.open(HERE, files=self.files, now_ms=0)
        self.log: MetadataLog | None = self.own_log
        self._properties = properties

    def append(self, *values: bytes, epoch: int = 1, flush: bool = True) -> None:
        view = self.own_core.shown_log
        self.own_log.local_log.append(
            make_batch(self.own_log.log_end_offset, epoch=epoch, values=values)
        )
        view.append(epoch=epoch, count=len(values))
        if flush:
            self.flush()

    def flush(self) -> None:
        """Make the log durable, and the core believe it."""
        self.own_core.shown_log.became_durable(self.own_log.local_log.flush())

    def store(
        self, epoch: int, *, leader_id: int | None = None, voted: int | None = None
    ) -> ElectionRecord:
        state = QuorumState(
            leader_epoch=epoch,
            leader_id=leader_id,
            voted_id=voted,
            voted_directory_id=None if voted is None else directory_id(voted),
        )
        QuorumStateFile(HERE, self.files).write(state, version=1)
        return ElectionRecord(epoch, leader_id, None if voted is None else key_of(voted))

    def lead(self, epoch: int, *, start: int = 0) -> None:
        """Be a leader that everybody has voted for."""
        for voter in self.voters.voters:
            self._properties.elections.vote_given(
                voter.key, epoch=epoch, candidate=key_of(self.node_id)
            )
        self.be_leader(epoch, start=start)

    def be_leader(self, epoch: int, *, start: int = 0) -> None:
        """Be a leader, with any votes."""
        self.commit(None)
        self.own_core.shown_role = Leader(
            epoch,
            own_key=key_of(self.node_id),
            own_endpoints=(endpoint_of(self.node_id),),
            epoch_start_offset=start,
            granting_ids=(),
            check_quorum_deadline=0.0,
        )
        self.store(epoch, leader_id=self.node_id)

    def follow(self, epoch: int, leader_id: int) -> None:
        self.own_core.shown_role = Follower(
            epoch,
            leader_id=leader_id,
            leader_endpoints=(endpoint_of(leader_id),),
            fetch_deadline=0.0,
        )
        self.store(epoch, leader_id=leader_id)

    def be(self, role: Role) -> None:
        self.own_core.shown_role = role

    def commit(self, high_watermark: int | None) -> None:
        """Know a high watermark."""
        self.own_core.shown_high_watermark = high_watermark

    def look(self) -> None:
        self._properties.after_event(self)

    def breaks(self, property_id: str) -> None:
        """Let the properties look, which must find this one violated."""
        with broken(property_id):
            self.look()

    def snapshot(self, end: OffsetAndEpoch, data: bytes) -> None:
        """Write a snapshot without asking whether it may be."""
        writer = self.own_log.snapshots.create(end)
        assert writer is not None
        writer.append(data)
        writer.freeze()


class PretendedQuorum:
    """Some pretended nodes and the properties that watch them."""

    def __init__(self, ids: Iterable[int] = (1, 2, 3)) -> None:
        self.now_ms = 0.0
        self.properties = Properties(Random(0), now_ms=lambda: self.now_ms)
        ids = tuple(ids)
        self.nodes = {one: PretendedNode(one, self.properties, ids) for one in ids}
        for node in self.nodes.values():
            self.properties.node_started(node)

    def __getitem__(self, node_id: int) -> PretendedNode:
        return self.nodes[node_id]

    def count(self, property_id: str) -> int:
        return self.properties.checks.counts[property_id]

    def replicate(self, *values: bytes, epoch: int = 1, on: Iterable[int] = (1, 2, 3)) -> None:
        """Append the same batch on some nodes."""
        for node_id in on:
            self[node_id].append(*values, epoch=epoch)
            self[node_id].look()

    def led_by(self, leader_id: int, *, epoch: int = 1) -> None:
        """Let one node lead and the others follow, with one committed record."""
        for node in self.nodes.values():
            if node.node_id == leader_id:
                node.lead(epoch, start=node.own_log.log_end_offset)
            else:
                node.follow(epoch, leader_id)
        self.replicate(b"start", epoch=epoch, on=self.nodes)
        end = self[leader_id].own_log.log_end_offset
        for node in self.nodes.values():
            node.commit(end)
            node.look()


def broken(property_id: str) -> pytest.RaisesExc[PropertyViolatedError]:
    """Expect that one property is violated."""
    return pytest.RaisesExc(PropertyViolatedError, match=rf"^{property_id} \(")
