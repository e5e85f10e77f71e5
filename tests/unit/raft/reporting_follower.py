"""A follower that is driven by hand, and what it reports."""

from tests.unit.raft.core_builder import (
    build_core,
    endpoints_of,
    history_of,
    key_of,
    static_voters_of,
    voters_of,
)

from kvorum.raft import Effects, Endpoint, LogView, RaftConfig, ReplicaKey, VoterSet
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg
from kvorum.raft.messages import Error

VOTER_REQUESTS = (msg.UpdateRaftVoterRequest, msg.AddRaftVoterRequest, msg.RemoveRaftVoterRequest)


class ReportingFollower:
    """Node 2 following node 1 in epoch 1; fetches are answered whenever the test asks for more."""

    def __init__(
        self,
        voters: VoterSet,
        *,
        kraft_version: int = 1,
        key: ReplicaKey | None = None,
        endpoints: tuple[Endpoint, ...] = (),
        auto_join: bool = False,
        can_vote: bool = True,
    ) -> None:
        self.now = 0.0
        self.log = LogView()
        self.history = history_of(voters, self.log, kraft_version)
        self.sent: dict[int, fx.Send] = {}
        self.refused: list[fx.PeerRefused] = []
        self.core = build_core(
            key or key_of(2),
            endpoints=endpoints or endpoints_of(2),
            can_vote=can_vote,
            # Elections must not come in between.
            config=RaftConfig(auto_join=auto_join, election_timeout_ms=10**9),
            log=self.log,
            history=self.history,
        )
        self.take(self.core.start(self.now, stored=None))
        self.follow(1)

    def follow(self, epoch: int) -> None:
        """Follow node 1 in an epoch; what was asked before does not count any more."""
        self.sent.clear()
        request = msg.BeginQuorumEpochRequest(epoch, 1, None, endpoints_of(1))
        self.take(self.core.receive(self.now, token=1, request=request))

    @property
    def leader(self) -> msg.KnownLeader:
        return msg.KnownLeader(self.core.role.epoch, 1, endpoints_of(1))

    def take(self, effects: Effects) -> None:
        for effect in (*effects.at_once, *effects.after_write):
            if isinstance(effect, fx.Send):
                self.sent[effect.number] = effect
            elif isinstance(effect, fx.PeerRefused):
                self.refused.append(effect)
        if self.log.durable_end_offset < self.log.end_offset:
            self.take(self.core.log_durable(self.now, self.log.end_offset))

    def told(self) -> msg.Request | None:
        """Return what the leader is being told, if it is not only asked for records."""
        found = [one.request for one in self.sent.values()]
        ours = [request for request in found if isinstance(request, VOTER_REQUESTS)]
        assert len(found) <= 1
        return ours[0] if ours else None

    def answer(self, response: msg.Response | msg.RequestFailed) -> None:
        ((number, _),) = self.sent.items()
        del self.sent[number]
        self.take(self.core.receive_response(self.now, number=number, response=response))

    def answer_fetch(self, *batches: msg.BatchSummary, high_watermark: int = 0) -> None:
        self.answer(
            msg.FetchResponse(
                Error.NONE, self.leader, high_watermark=high_watermark, batches=batches
            )
        )

    def wait(self, elapsed_ms: float) -> msg.Request | None:
        """Let time pass, with fetches answered every half second; stop at something to tell."""
        end = self.now + elapsed_ms
        while self.now < end and self.told() is None:
            self.now = min(end, self.now + 500)
            self.take(self.core.tick(self.now))
            if self.sent and self.told() is None:
                self.answer_fetch()
        return self.told()

    def append_voters(self, voters: VoterSet) -> None:
        """Let the leader send a new voter set, committed."""
        end = self.log.end_offset
        batch = msg.BatchSummary(end, end, 1, voters=((end, voters),))
        self.answer_fetch(batch, high_watermark=end + 1)


RECORDED, STATIC = voters_of(1, 2, 3), static_voters_of(1, 2, 3)
