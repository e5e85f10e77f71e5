"""The steps of a reassignment for a leader that does not act on target voters (KIP-642).

Real Kafka's controllers keep the target voters and do nothing about them. While one of them leads,
a controller of ours does what an operator would: it asks for the state of the quorum, decides by
the same rules as a leader of ours, and sends one change at a time. The leader checks each change as
it always does, and takes one at a time: this cannot harm the quorum more than an operator could. It
has to prevent a step that is out of date, and a step that two controllers take.

1. The leader describes the quorum. If the response has the target voters (the tagged field
   642), the leader is one of ours and acts itself: it is left alone for the rest of its epoch.
2. The image has to hold everything that was committed when the leader described the quorum, and
   the voters of this replica's own log have to be the described ones, and committed. So the step is
   decided from target voters and from voters that were the latest when the leader answered.
3. The step is sent on the same connection, once, and only if it is this controller's turn.

What remains is the time from the leader's answer to its receipt of the step. Target voters that
replace others just then may be followed by one step towards the others; and if the others were
reached just then, the new ones are cleared with them.
"""

import logging
from functools import partial
from typing import Final, TypeVar

from kvorum.controller.quorum_description import QuorumDescription
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    HandOver,
    Reached,
    RemoveVoter,
    Step,
)
from kvorum.controller.quorum_reassignment.plan import (
    ReassignmentDescription,
    describe_reassignment,
)
from kvorum.controller.quorum_reassignment.pursuit import (
    Pursuit,
    Situation,
    Turn,
    live_controllers,
    quorum_described_by,
)
from kvorum.controller.quorum_reassignment.requests import (
    configuration_request,
    refusal_of,
    refusal_to_clear,
    request_of,
)
from kvorum.metadata.address import Address
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.metadata.voters import VoterKey, recorded_target_voters
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.controller.quorum_reassignment import ReassignmentStatus
from kvorum.node.coroutines import sleep
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader, PublishedImages
from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft import RaftNode
from kvorum.node.runtime import Runtime
from kvorum.node.tasks import awaiting
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kvorum.wire.primitives import Message
from kvorum.wire.quorum_reassignment_tag import reassignment_in

Response = TypeVar("Response", bound=Message)
LOOKS_PER_ELECTION_TIMEOUT: Final = 5
"""The time between two questions to the leader; our own leader looks more often."""
DELAYS_PER_ELECTION_TIMEOUT: Final = 2
"""The time for which a controller lets the ones before it act: a few looks."""
ANSWER_TIMES: Final = 2
"""The leader gives up a change after the request timeout of the quorum, and then answers."""
_log = logging.getLogger(__name__)


class LeaderConnection:
    """A connection to the leader of one epoch, over which nothing is sent twice.

    It is opened with the first request, and again after a failure. The channel to the controller
    sends a request again, to the node that leads by then. That is wrong for a request that was
    decided from the answer of one leader.
    """

    def __init__(self, *, client_id: str, timeout_ms: int, outgoing: Outgoing) -> None:
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._outgoing = outgoing
        self._epoch = -1
        self._connection: ClientConnection | None = None

    async def open(self, address: Address, *, epoch: int) -> None:
        """Connect to the leader of `epoch` unless that is done. Raises ClientConnectionError."""
        connection = self._connection
        if connection is not None and connection.is_open and epoch == self._epoch:
            return
        self.close()
        self._epoch = epoch
        await awaiting(partial(self._connect, address))

    async def request(self, message: Message, kind: type[Response]) -> Response:
        """Return the leader's response. Raises ClientConnectionError."""
        if self._connection is None:
            raise ClientConnectionError("there is no connection to the leader")
        return await self._connection.send(message, kind, timeout_ms=self._timeout_ms)

    def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    async def _connect(self, address: Address) -> None:
        """Open the connection and keep it in one step of asyncio, so that `close` finds it."""
        self._connection = await self._outgoing.open(
            address, client_id=self._client_id, timeout_ms=self._timeout_ms
        )


class QuorumReassignmentProxy:
    """Has another node's replica, which leads, take one step after the other."""

    def __init__(
        self,
        controller: QuorumController,
        *,
        raft: RaftNode,
        loader: MetadataLoader,
        images: PublishedImages,
        runtime: Runtime,
        outgoing: Outgoing,
    ) -> None:
        settings = raft.settings
        config = settings.raft
        self._controller = controller
        self._raft = raft
        self._loader = loader
        self._images = images
        self._runtime = runtime
        self._status = ReassignmentStatus()
        self._pursuit = Pursuit(
            election_timeout_ms=config.election_timeout_ms, fetch_timeout_ms=config.fetch_timeout_ms
        )
        self._turn = Turn(
            settings.node_id, delay_ms=config.election_timeout_ms / DELAYS_PER_ELECTION_TIMEOUT
        )
        self._leader = LeaderConnection(
            client_id=str(settings.node_id),
            timeout_ms=ANSWER_TIMES * config.request_timeout_ms,
            outgoing=outgoing,
        )
        self._quorum: QuorumDescription | None = None
        self._acting_epoch = -1
        self._refused: tuple[Situation, Step] | None = None

    def describe(self, text: str) -> ReassignmentDescription | None:
        """Return how far the quorum is from the target voters; None where the leader sees to it."""
        if self._quorum is None:
            return None
        return describe_reassignment(
            text, self._quorum, self._status.blocked_for(text), now_ms=self._runtime.wall_ms()
        )

    async def take_steps(self) -> None:
        """Take steps while there are target voters and another node leads."""
        try:
            while not self._raft.is_leader:
                if recorded_target_voters(self._loader.published) is None:
                    return
                await self._look()
                await self._pause()
        finally:
            self._leader.close()

    async def _pause(self) -> None:
        """Wait until the leader is asked again, or until this is the active controller."""
        pause_ms = self._raft.settings.raft.election_timeout_ms / LOOKS_PER_ELECTION_TIMEOUT
        if self._controller.is_active:
            # The controller of a replica that leads no longer learns of that in a moment.
            await sleep(self._runtime, pause_ms)
            return
        await self._controller.wait_until_active(pause_ms)

    async def _look(self) -> None:
        """Ask the leader, and take the next step if there is one."""
        epoch, address = self._raft.epoch, self._raft.leader_endpoint()
        if address is None or epoch == self._acting_epoch:
            self._quorum = None
            return
        try:
            await self._leader.open(address, epoch=epoch)
            answer = await self._described(epoch)
            if answer is None:
                self._quorum = None
            elif await self._has_image_of(answer.high_watermark):
                await self._decide(answer)
        except (ClientConnectionError, WireError) as error:
            self._quorum = None
            self._turn.missed()
            _log.debug("The leader cannot be asked about the reassignment: %s", error)

    async def _described(self, epoch: int) -> DescribeQuorumResponse.PartitionData | None:
        """Return the quorum as the leader of `epoch` describes it, None if that one acts itself."""
        topic = DescribeQuorumRequest.TopicData(
            CLUSTER_METADATA_TOPIC,
            [DescribeQuorumRequest.PartitionData(CLUSTER_METADATA_PARTITION)],
        )
        response = await self._leader.request(
            DescribeQuorumRequest([topic]), DescribeQuorumResponse
        )
        described = [one for topic in response.topics for one in topic.partitions]
        if response.error_code != ErrorCode.NONE or not described:
            self._note_silence(response.error_code)
            return None
        answer = described[0]
        if answer.error_code != ErrorCode.NONE or answer.leader_epoch != epoch:
            # It leads no longer, or not yet.
            return None
        if reassignment_in(answer) is not None:
            self._acting_epoch = epoch
            return None
        return answer

    def _note_silence(self, error_code: int) -> None:
        """Log that the leader does not describe the quorum, probably for lack of a permission."""
        text = recorded_target_voters(self._loader.published)
        if text is not None:
            cause = f"the leader refuses to describe the quorum: error {error_code}"
            self._status.wait(text, Blocked(BlockReason.REFUSED, cause))

    async def _has_image_of(self, high_watermark: int) -> bool:
        """Wait until everything that the leader had committed is in the image, if it soon is."""
        return await self._images.wait_for(
            lambda _: self._loader.last_offset >= high_watermark - 1,
            timeout_ms=self._raft.settings.raft.election_timeout_ms,
        )

    async def _decide(self, answer: DescribeQuorumResponse.PartitionData) -> None:
        """Take the next step if there is one, and if it is this controller's turn."""
        image = self._loader.published
        now_ms = self._runtime.monotonic_ms()
        fetch_timeout_ms = self._raft.settings.raft.fetch_timeout_ms
        quorum = quorum_described_by(
            answer,
            kraft_version=self._raft.kraft_version,
            committed_voters=self._raft.committed_voters(),
        ).without_superseded(within_ms=fetch_timeout_ms)
        decision = self._pursuit.decide(image, quorum, now_ms)
        if decision is None:
            return
        self._quorum = quorum
        text, step = decision.target_text, decision.step
        waits_for = step.reason if isinstance(step, Blocked) else None
        voters = frozenset(state.key for state in quorum.voters)
        situation = Situation(text, answer.leader_epoch, voters, waits_for)
        live = live_controllers(
            quorum, image.cluster.controllers, fetch_timeout_ms=fetch_timeout_ms
        )
        has_turn = self._turn.has_come(situation, live, now_ms)
        if isinstance(step, Blocked):
            if has_turn:
                self._status.wait(text, step)
        elif has_turn:
            await self._take(step, situation, quorum)
        elif self._refused is None or self._refused[0] != situation:
            self._status.advance(text)

    async def _take(self, step: Step, situation: Situation, quorum: QuorumDescription) -> None:
        if isinstance(step, HandOver):
            # A leader that is asked to remove itself resigns once that is committed.
            step = RemoveVoter(_leader_of(quorum))
        if (situation, step) != self._refused:
            _log.info(
                LogEvent(
                    "Reassigning the quorum in place of its leader",
                    leader=quorum.leader_id,
                    target_voters=situation.target_text,
                    step=str(step),
                )
            )
        refusal = await self._ask(step)
        if refusal is None:
            self._refused = None
            self._status.advance(situation.target_text)
            self._turn.changed_voters(situation, _voters_after(step, situation.voters))
            return
        self._refused = situation, step
        self._turn.missed()
        self._pursuit.refused(step)
        self._status.wait(situation.target_text, refusal)

    async def _ask(self, step: Step) -> Blocked | None:
        """Send a step to the leader; return why it does not take it.

        That another controller has been quicker is a refusal too: then that one goes on.
        """
        if isinstance(step, Reached):
            answer = await self._leader.request(
                configuration_request(None), IncrementalAlterConfigsResponse
            )
            return refusal_to_clear(step, answer)
        assert isinstance(step, AddVoter | RemoveVoter)
        request = request_of(step, cluster_id=self._raft.settings.cluster_id)
        if isinstance(request, AddRaftVoterRequest):
            return refusal_of(step, await self._leader.request(request, AddRaftVoterResponse))
        return refusal_of(step, await self._leader.request(request, RemoveRaftVoterResponse))


def _leader_of(quorum: QuorumDescription) -> VoterKey:
    return next(state.key for state in quorum.voters if state.key.id == quorum.leader_id)


def _voters_after(step: Step, voters: frozenset[VoterKey]) -> frozenset[VoterKey]:
    match step:
        case AddVoter():
            return voters | {step.key}
        case RemoveVoter():
            return voters - {step.key}
        case _:
            return voters
