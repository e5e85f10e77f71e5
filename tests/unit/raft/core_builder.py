"""A core made of what a test cares about: one that leads, and one that follows, driven by hand."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import TypeVar

from kvorum.raft import (
    BOOTSTRAP_SNAPSHOT_ID,
    Destination,
    Effect,
    Effects,
    Endpoint,
    Endpoints,
    Identity,
    LogView,
    OffsetAndEpoch,
    RaftConfig,
    RaftCore,
    ReplicaKey,
    Voter,
    VoterSet,
    VoterSetHistory,
)
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg

LISTENER = "CONTROLLER"
LEADER = 1
_Kind = TypeVar("_Kind")
EPOCH = 3
LEADER_ID = 1
_Effect = TypeVar("_Effect")
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


def build_core(
    key: ReplicaKey,
    *,
    endpoints: Endpoints = (),
    can_vote: bool = True,
    bootstrap: tuple[Destination, ...] = (),
    config: RaftConfig | None = None,
    log: LogView | None = None,
    history: VoterSetHistory | VoterSet | None = None,
    random: Random | None = None,
) -> RaftCore:
    """Return a core that has not been started; without a log, its directory is empty.

    A voter set in place of a history is what the configuration says.
    """
    if not isinstance(history, VoterSetHistory):
        history = VoterSetHistory(static=history or VoterSet())
    return RaftCore(
        Identity(
            key=key,
            endpoints=endpoints,
            listener_name=LISTENER,
            can_vote=can_vote,
            bootstrap=bootstrap,
        ),
        config=config or RaftConfig(),
        log=LogView() if log is None else log,
        history=history,
        random=random or Random(1),
    )


CONFIG = RaftConfig()


EMPTY_LOG = OffsetAndEpoch(0, 0)


def key_of(node_id: int, directory: int | None = None) -> ReplicaKey:
    """Return the key of a node in its usual directory, or in another one."""
    return ReplicaKey(node_id, bytes([node_id if directory is None else directory]) * 16)


def destination_of(node_id: int) -> Destination:
    """Return where a node listens; the server with the id -n is node n."""
    return Destination(node_id, f"host{abs(node_id)}", 9093)


def endpoints_of(node_id: int) -> Endpoints:
    return (Endpoint(LISTENER, f"host{abs(node_id)}", 9093),)


def voters_of(*node_ids: int) -> VoterSet:
    """Return the voters as they are recorded at kraft.version 1."""
    return VoterSet.of(Voter(key_of(i), endpoints_of(i), 0, 1) for i in node_ids)


def static_voters_of(*node_ids: int) -> VoterSet:
    """Return the voters as the configuration gives them."""
    return VoterSet.of(Voter(ReplicaKey(i), endpoints_of(i)) for i in node_ids)


def history_of(voters: VoterSet, log: LogView, kraft_version: int) -> VoterSetHistory:
    """Return what is known of voters that are configured or, from version 1 on, in a snapshot."""
    if kraft_version == 0:
        return VoterSetHistory(static=voters)
    log.snapshots.append(BOOTSTRAP_SNAPSHOT_ID)
    history = VoterSetHistory()
    history.start_from_snapshot(BOOTSTRAP_SNAPSHOT_ID, voters=voters, kraft_version=kraft_version)
    return history


def observer(servers: Iterable[int], *, seed: int = 1) -> RaftCore:
    """Return node 9, not started; ids of servers are -2 and below."""
    return build_core(
        key_of(9),
        endpoints=endpoints_of(9),
        can_vote=False,
        bootstrap=tuple(map(destination_of, servers)),
        random=Random(seed),
    )


def vote_request(
    candidate_id: int,
    *,
    epoch: int,
    log_end: OffsetAndEpoch = EMPTY_LOG,
    voter: ReplicaKey | None = None,
    is_pre_vote: bool = False,
) -> msg.VoteRequest:
    return msg.VoteRequest(epoch, key_of(candidate_id), voter, log_end, is_pre_vote)


def sends_in(effects: Effects) -> list[fx.Send]:
    told = (*effects.at_once, *effects.after_write)
    return [effect for effect in told if isinstance(effect, fx.Send)]


class DrivenLeader:
    """Node 1 among `voter_ids`, with what it said last; its disk is always at once done."""

    def __init__(
        self,
        voter_ids: Sequence[int] = (1, 2, 3),
        *,
        kraft_version: int = 1,
        is_committed: bool = True,
    ) -> None:
        self.now = 0.0
        self.log = LogView()
        voters = voters_of(*voter_ids) if kraft_version else static_voters_of(*voter_ids)
        self.history = history_of(voters, self.log, kraft_version)
        self.sent: dict[int, fx.Send] = {}
        self.answers: dict[int, msg.Response] = {}
        self.appended: list[fx.AppendVoters] = []
        self._token = 0
        self.core = build_core(
            key_of(LEADER), endpoints=endpoints_of(LEADER), log=self.log, history=self.history
        )
        self.take(self.core.start(self.now, stored=None))
        self.win()
        if is_committed:
            self.commit()

    def win(self) -> None:
        """Have every other voter say yes, to the pre-vote and to the vote."""
        self.advance(2 * CONFIG.election_timeout_ms)
        for _ in range(2):
            for number, send in list(self.sent.items()):
                if isinstance(send.request, msg.VoteRequest):
                    leader = msg.KnownLeader(send.request.epoch)
                    self.respond(number, msg.VoteResponse(msg.Error.NONE, leader, is_granted=True))

    def acknowledge(self) -> None:
        """Let the other voters answer that they know it for the leader."""
        for number, send in list(self.sent.items()):
            if isinstance(send.request, msg.BeginQuorumEpochRequest):
                answer = msg.BeginQuorumEpochResponse(msg.Error.NONE, self.core_leader())
                self.respond(number, answer)

    @property
    def role(self) -> str:
        return self.core.role.name.value

    @property
    def epoch(self) -> int:
        return self.core.role.epoch

    @property
    def voter_ids(self) -> tuple[int, ...]:
        return self.history.voters.ids

    def core_leader(self) -> msg.KnownLeader:
        """Return what every answer says of epoch and leader."""
        role = self.core.role
        return msg.KnownLeader(role.epoch, role.leader_id, role.leader_endpoints)

    def take(self, effects: Effects) -> None:
        """Note effects; what was appended is durable at once."""
        both: tuple[Effect, ...] = (*effects.at_once, *effects.after_write)
        for effect in both:
            match effect:
                case fx.Send():
                    self.sent[effect.number] = effect
                case fx.SendResponse():
                    self.answers[effect.token] = effect.response
                case fx.AppendVoters():
                    self.appended.append(effect)
                case _:
                    pass
        if self.log.durable_end_offset < self.log.end_offset:
            self.take(self.core.log_durable(self.now, self.log.end_offset))

    def advance(self, elapsed_ms: float) -> None:
        end = self.now + elapsed_ms
        while self.core.next_deadline <= end:
            self.now = max(self.now, self.core.next_deadline)
            before = self.core.next_deadline
            self.take(self.core.tick(self.now))
            assert self.core.next_deadline > min(before, self.now), "nothing was due"
        self.now = end

    def ask(self, request: msg.Request) -> int:
        self._token += 1
        self.take(self.core.receive(self.now, token=self._token, request=request))
        return self._token

    def answered(self, request: msg.Request, kind: type[_Kind]) -> _Kind:
        """Put a request to it that is answered at once; return the answer."""
        return self.answer_at(self.ask(request), kind)

    def answer_at(self, token: int, kind: type[_Kind]) -> _Kind:
        answer = self.answers[token]
        assert isinstance(answer, kind)
        return answer

    def respond(self, number: int, response: msg.Response | msg.RequestFailed) -> None:
        del self.sent[number]
        self.take(self.core.receive_response(self.now, number=number, response=response))

    def propose(self) -> None:
        _, effects = self.core.propose(self.now, epoch=self.epoch, count=1)
        self.take(effects)

    def fetch(self, key: ReplicaKey, offset: int | None = None) -> None:
        """Let a replica fetch, from the log's end or from `offset` on."""
        at = self.log.end_offset if offset is None else offset
        self.ask(
            msg.FetchRequest(
                replica=key,
                epoch=self.epoch,
                position=OffsetAndEpoch(at, 0 if at == 0 else self.log.last_epoch),
                max_wait_ms=0,
                bytes_max=1,
                high_watermark=None,
            )
        )

    def commit(self) -> None:
        """Let every other voter fetch everything."""
        for voter in self.history.voters.others(key_of(LEADER)):
            self.fetch(voter.key)

    def probes(self) -> list[tuple[int, fx.Send]]:
        """Return the questions for kraft.versions that are under way."""
        return [
            (number, send)
            for number, send in self.sent.items()
            if isinstance(send.request, msg.ApiVersionsRequest)
        ]

    def answer_probe(self, response: msg.ApiVersionsResponse | msg.RequestFailed) -> None:
        """Let the new voter answer what it was asked."""
        ((number, _),) = self.probes()
        self.respond(number, response)

    def add(self, node_id: int, *, acks_when_committed: bool = True) -> int:
        """Ask that a node that has caught up become a voter; return the token of the answer."""
        self.fetch(key_of(node_id))
        return self.ask(
            msg.AddRaftVoterRequest(key_of(node_id), endpoints_of(node_id), acks_when_committed)
        )

    def remove(self, node_id: int) -> int:
        return self.ask(msg.RemoveRaftVoterRequest(key_of(node_id)))

    def update_of(
        self, key: ReplicaKey | None, endpoints: Endpoints, *, versions: tuple[int, int] = (0, 1)
    ) -> msg.UpdateRaftVoterRequest:
        """Return what a voter tells it of itself; that alone changes nothing."""
        return msg.UpdateRaftVoterRequest(self.epoch, key, endpoints, *versions)

    def upgrade(self, kraft_version: int = 1, *, validate_only: bool = False) -> bool:
        """Upgrade kraft.version, which is not committed yet; return whether the version is new."""
        is_new, effects = self.core.upgrade_kraft_version(
            self.now, epoch=self.epoch, kraft_version=kraft_version, validate_only=validate_only
        )
        self.take(effects)
        return is_new

    def uncommitted_text(self) -> str:
        """Return Kafka's text for a change that has to wait for the commit of the latest one."""
        return (
            "Request timed out waiting for voters to commit the latest voter change at "
            f"Optional[{self.history.voters_offset}] with HWM {self.core.high_watermark}"
        )

    def resign(self) -> None:
        self.take(self.core.resign(self.now, epoch=self.epoch))


CAN_ALL = msg.ApiVersionsResponse((0, 1))
"""The answer of a node that can work at every kraft.version."""


class DrivenFollower:
    """A voter or, with a higher id, an observer; its log holds `end_offset` records of epoch 1."""

    def __init__(
        self, own_id: int = 2, *, end_offset: int = 0, voter_count: int = 3, seed: int = 1
    ) -> None:
        self.log = LogView()
        if end_offset:
            self.log.append(epoch=1, count=end_offset)
            self.log.became_durable(end_offset)
        self.core = build_core(
            key_of(own_id),
            endpoints=endpoints_of(own_id),
            can_vote=own_id <= voter_count,
            bootstrap=(Destination(-2, "host3", 9093),),
            log=self.log,
            history=static_voters_of(*range(1, voter_count + 1)),
            random=Random(seed),
        )
        self.now = 0.0
        self.effects: list[Effect] = []
        self.take(self.core.start(0.0, stored=None))
        begin = msg.BeginQuorumEpochRequest(EPOCH, LEADER_ID, None, endpoints_of(LEADER_ID))
        self.take(self.core.receive(self.now, token=1, request=begin))

    def take(self, effects: Effects) -> None:
        self.effects = [*effects.at_once, *effects.after_write]

    def leader(self, epoch: int = EPOCH) -> msg.KnownLeader:
        return msg.KnownLeader(epoch, LEADER_ID, endpoints_of(LEADER_ID))

    def found(self, kind: type[_Effect]) -> list[_Effect]:
        """Return the last effects of one kind."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def asked(self, kind: type[_Request]) -> tuple[fx.Send, _Request]:
        """Return the one request that has just left, which must be of a kind."""
        (send,) = self.found(fx.Send)
        assert isinstance(send.request, kind)
        return send, send.request

    def answered(self, request: msg.Request, kind: type[_Response]) -> _Response:
        """Put a request to it that is answered with the next write; return the answer."""
        self.take(self.core.receive(self.now, token=2, request=request))
        (answer,) = self.found(fx.SendResponse)
        assert isinstance(answer.response, kind)
        return answer.response

    def respond(self, response: msg.Response | msg.RequestFailed) -> None:
        (send,) = self.found(fx.Send)
        self.take(self.core.receive_response(self.now, number=send.number, response=response))

    def get(
        self,
        *batches: msg.BatchSummary,
        high_watermark: int | None = 0,
        diverging: OffsetAndEpoch | None = None,
        snapshot_id: OffsetAndEpoch | None = None,
    ) -> None:
        """Answer the fetch that has just left; what comes is made durable at once."""
        self.respond(
            msg.FetchResponse(
                error=msg.Error.NONE,
                leader=self.leader(),
                high_watermark=high_watermark,
                diverging=diverging,
                snapshot_id=snapshot_id,
                batches=batches,
            )
        )
        if self.log.durable_end_offset < self.log.end_offset:
            noted = self.effects
            self.take(self.core.log_durable(self.now, self.log.end_offset))
            self.effects = [*noted, *self.effects]

    def get_part(self, snapshot_id: OffsetAndEpoch, *, position: int, size: int = 10) -> None:
        """Answer with one byte of a snapshot."""
        self.respond(
            msg.FetchSnapshotResponse(
                error=msg.Error.NONE,
                leader=self.leader(),
                snapshot_id=snapshot_id,
                position=position,
                size=size,
                part_size=1,
            )
        )

    def advance(self, delay_ms: float) -> None:
        self.now += delay_ms
        self.take(self.core.tick(self.now))
