"""A core that follows node 1, whose responses are written by hand."""

from random import Random
from typing import TypeVar

from tests.unit.raft.core_builder import build_core, endpoints_of, key_of, static_voters_of

from kvorum.raft import Destination, Effect, Effects, LogView, OffsetAndEpoch
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg

EPOCH = 3
LEADER_ID = 1
_Effect = TypeVar("_Effect")
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


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
        """Return what node 1 says of itself."""
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
