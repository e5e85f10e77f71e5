"""Every message of a peer in every role is answered or refused, and nothing breaks."""

from collections.abc import Callable
from random import Random

import pytest
from tests.unit.raft.core_builder import (
    LISTENER,
    build_core,
    destination_of,
    endpoints_of,
    history_of,
    static_voters_of,
    voters_of,
)

from kvorum.raft import (
    Effects,
    Endpoint,
    LogView,
    OffsetAndEpoch,
    RaftConfig,
    ReplicaKey,
    Voter,
    VoterSet,
)
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
SMALL = [-2, -1, 0, 1, 2, 3, 4]
EPOCHS = [*SMALL, 5, 6, 7, INT32_MAX - 1, INT32_MAX, -INT32_MAX - 1]
OFFSETS = [*SMALL, 5, 9, INT64_MAX, -INT64_MAX - 1]
IDS = [1, 2, 3, 9, 0, -1, -5, INT32_MAX]


class Peer:
    """Makes up messages, most of which cannot be right."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.log = LogView()

    def key(self) -> ReplicaKey:
        directory = self.random.choice([None, b"\x01" * 16, b"\x02" * 16, b"x" * 16])
        return ReplicaKey(self.random.choice(IDS), directory)

    def maybe_key(self) -> ReplicaKey | None:
        return self.random.choice([None, self.key()])

    def epoch(self) -> int:
        return self.random.choice(EPOCHS)

    def position(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.random.choice(OFFSETS), self.epoch())

    def endpoints(self) -> tuple[Endpoint, ...]:
        count = self.random.choice([0, 0, 1, 2])
        return tuple(Endpoint(self.random.choice([LISTENER, "X"]), "h", 1) for _ in range(count))

    def leader(self) -> msg.KnownLeader:
        leader_id = self.random.choice([None, 1, 2, 3, 9])
        return msg.KnownLeader(self.epoch(), leader_id, self.endpoints())

    def error(self) -> msg.Error:
        return self.random.choice([msg.Error.NONE] * 8 + list(msg.Error))

    def request(self) -> msg.Request:
        choose = self.random.choice
        kinds: list[Callable[[], msg.Request]] = [
            lambda: msg.VoteRequest(
                self.epoch(), self.key(), self.maybe_key(), self.position(), choose([True, False])
            ),
            lambda: msg.BeginQuorumEpochRequest(
                self.epoch(), choose(IDS), self.maybe_key(), self.endpoints()
            ),
            lambda: msg.EndQuorumEpochRequest(
                epoch=self.epoch(),
                leader_id=choose(IDS),
                preferred=tuple(self.key() for _ in range(choose([0, 1, 3, 80]))),
                endpoints=self.endpoints(),
            ),
            lambda: msg.FetchRequest(
                replica=self.maybe_key(),
                epoch=self.epoch(),
                position=self.position(),
                max_wait_ms=choose([-1, 0, 500, INT32_MAX]),
                bytes_max=choose([-1, 0, INT32_MAX]),
                high_watermark=choose([None, *OFFSETS]),
            ),
            lambda: msg.FetchSnapshotRequest(
                replica=self.maybe_key(),
                epoch=self.epoch(),
                snapshot_id=self.position(),
                position=choose(OFFSETS),
                bytes_max=choose([-1, 0, INT32_MAX]),
            ),
            msg.DescribeQuorumRequest,
            lambda: msg.AddRaftVoterRequest(
                self.maybe_key(), self.endpoints(), choose([True, False])
            ),
            lambda: msg.RemoveRaftVoterRequest(self.maybe_key()),
            lambda: msg.UpdateRaftVoterRequest(
                self.epoch(), self.maybe_key(), self.endpoints(), choose(SMALL), choose(SMALL)
            ),
        ]
        return choose(kinds)()

    def response_to(self, request: msg.Request) -> msg.Response | msg.RequestFailed:
        """Return any response of the kind that belongs to a request, or a failure."""
        if self.random.random() < 0.1:
            lacks_version, is_gone = self.random.choice(
                [(True, False), (False, False), (False, True)]
            )
            return msg.RequestFailed("no", lacks_version, is_gone)
        error, leader = self.error(), self.leader()
        match request:
            case msg.VoteRequest():
                granted = self.random.choice([True, False])
                return msg.VoteResponse(error=error, leader=leader, is_granted=granted)
            case msg.BeginQuorumEpochRequest():
                return msg.BeginQuorumEpochResponse(error=error, leader=leader)
            case msg.EndQuorumEpochRequest():
                return msg.EndQuorumEpochResponse(error=error, leader=leader)
            case msg.FetchSnapshotRequest():
                return self.snapshot_part(error, leader, request)
            case msg.UpdateRaftVoterRequest():
                return msg.UpdateRaftVoterResponse(error=error, leader=leader)
            case msg.AddRaftVoterRequest():
                return msg.AddRaftVoterResponse(error)
            case msg.RemoveRaftVoterRequest():
                return msg.RemoveRaftVoterResponse(error)
            case msg.ApiVersionsRequest():
                versions = self.random.choice([None, (0, 1), (1, 0), (-1, 9)])
                return msg.ApiVersionsResponse(versions, self.random.choice([None, "NOT_KNOWN"]))
            case _:
                return self.fetched(error, leader)

    def voters(self) -> VoterSet:
        """Return any voters, with or without the one that receives them."""
        ids = self.random.sample([1, 2, 3, 9], self.random.choice([1, 2, 3]))
        return VoterSet.of(Voter(self.key_of(i), (Endpoint(LISTENER, "h", 1),), 0, 1) for i in ids)

    def key_of(self, node_id: int) -> ReplicaKey:
        return ReplicaKey(node_id, self.random.choice([None, b"\x01" * 16, b"x" * 16]))

    def batch(self, log: LogView) -> msg.BatchSummary:
        """Return a batch that continues a log, or any other; some tell of voters."""
        base_offset = self.random.choice([log.end_offset] * 5 + OFFSETS)
        return msg.BatchSummary(
            base_offset=base_offset,
            last_offset=self.random.choice([base_offset] * 5 + OFFSETS),
            epoch=self.random.choice([log.last_epoch] * 5 + EPOCHS),
            voters=self.random.choice([(), ((base_offset, self.voters()),)]),
            kraft_versions=self.random.choice([(), (), ((base_offset, 1),)]),
        )

    def snapshot_part(
        self, error: msg.Error, leader: msg.KnownLeader, request: msg.FetchSnapshotRequest
    ) -> msg.FetchSnapshotResponse:
        is_right = self.random.random() < 0.5
        return msg.FetchSnapshotResponse(
            error=error,
            leader=leader,
            snapshot_id=request.snapshot_id if is_right else self.position(),
            position=request.position if is_right else self.random.choice(OFFSETS),
            size=self.random.choice(OFFSETS),
            part_size=self.random.choice([0, 1, 5]),
        )

    def fetched(self, error: msg.Error, leader: msg.KnownLeader) -> msg.FetchResponse:
        choose = self.random.choice
        return msg.FetchResponse(
            error=error,
            leader=leader,
            high_watermark=choose([None, *OFFSETS]),
            diverging=choose([None, None, self.position()]),
            snapshot_id=choose([None, None, self.position()]),
            batches=tuple(self.batch(self.log) for _ in range(choose([0, 1, 2]))),
        )


class Victim:
    """A core that is driven without disk or network."""

    def __init__(
        self, random: Random, *, voter_count: int, can_vote: bool, kraft_version: int
    ) -> None:
        log = LogView()
        ids = range(1, voter_count + 1)
        voters = voters_of(*ids) if kraft_version else static_voters_of(*ids)
        self.core = build_core(
            ReplicaKey(1 if can_vote else 9, b"\x01" * 16),
            endpoints=endpoints_of(1),
            can_vote=can_vote,
            bootstrap=tuple(map(destination_of, (-2, 2))),
            config=RaftConfig(auto_join=True),
            log=log,
            history=history_of(voters, log, kraft_version),
            random=random,
        )
        self.sent: dict[int, msg.Request] = {}
        self.now = 0.0
        self.do(self.core.start(0, stored=None))

    def do(self, effects: Effects) -> None:
        if effects.write is not None:
            assert 0 <= effects.write.record.epoch <= INT32_MAX
        for effect in (*effects.at_once, *effects.after_write):
            match effect:
                case fx.Send():
                    self.sent[effect.number] = effect.request
                case fx.AppendFetched() | fx.AppendEpochStart() | fx.AppendVoters():
                    self.do(self.core.log_durable(self.now, self.core.log.end_offset))
                case fx.InstallDownload():
                    self.install(effect.snapshot_id)
                case _:
                    pass

    def install(self, snapshot_id: OffsetAndEpoch) -> None:
        self.do(self.core.snapshot_installed(self.now, snapshot_id, voters=None, kraft_version=0))


@pytest.mark.parametrize(("voter_count", "can_vote"), [(1, True), (3, True), (3, False)])
@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize("seed", range(10))
def test_no_message_breaks_anything(
    voter_count: int, can_vote: bool, seed: int, kraft_version: int
) -> None:
    random = Random(seed)
    peer = Peer(random)
    victim = Victim(random, voter_count=voter_count, can_vote=can_vote, kraft_version=kraft_version)
    peer.log = victim.core.log
    roles: set[str] = set()
    for token in range(600):
        victim.now += random.choice([0, 0, 1, 30, 700])
        if random.random() < 0.5 or not victim.sent:
            effects = victim.core.receive(victim.now, token=token, request=peer.request())
        else:
            number = random.choice(list(victim.sent)[-3:])
            response = peer.response_to(victim.sent.pop(number))
            effects = victim.core.receive_response(victim.now, number=number, response=response)
        victim.do(effects)
        victim.do(victim.core.tick(victim.now))
        roles.add(victim.core.role.name.value)
        log = victim.core.log
        assert 0 <= log.start_offset <= log.durable_end_offset <= log.end_offset
        assert victim.core.next_deadline > victim.now
    assert roles <= {"unattached", "follower"} or can_vote
