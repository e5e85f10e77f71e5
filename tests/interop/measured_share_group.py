"""Share groups that give every metric of their records something to measure."""

from collections.abc import Mapping, Sequence
from typing import Final

from tests.interop.asked_broker import serves_share
from tests.interop.dead_letters import QUEUE, is_archived
from tests.support.group_configs import configure_group
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, list_offset, produce
from tests.support.topics import create_topic, topic_id, wait_until_led
from tests.support.waiting import wait_for

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.topic_names import SHARE_GROUP_STATE_TOPIC
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kvorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

SHARE_STATE_SETTINGS: Final = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "1",
    "share.coordinator.state.topic.prune.interval.ms": "500",
}
"""Of two writes of a state the second is a snapshot, before which nothing is kept for long."""
GROUP: Final = "measured"
BURIED_GROUP: Final = "buried"
"""A group whose rejected records come to its dead-letter queue."""
LOST_GROUP: Final = "lost"
"""A group whose queue refuses all records: it is compacted, and they have no keys."""
QUEUES: Final[Mapping[str, Mapping[str, str]]] = {
    BURIED_GROUP: {},
    LOST_GROUP: {"cleanup.policy": "compact"},
}
"""The configurations of the queues, by their groups."""
DEAD_LETTER_METERS: Final = (
    ("DeadLetterQueueRecordCount", BURIED_GROUP),
    ("DeadLetterQueueTotalProduceRequests", BURIED_GROUP),
    ("DeadLetterQueueTotalProduceRequests", LOST_GROUP),
    ("DeadLetterQueueFailedProduceRequests", LOST_GROUP),
)
"""The meters of dead letters, and the groups for which a real broker has each."""
MEMBER: Final = "the-one-member"
VERSION: Final = 2
WAIT_MS: Final = 10_000
MAX_BYTES: Final = 1_000_000
EARLIEST: Final = -2
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
LED, LED_ELSEWHERE = 0, 1
"""The partitions of the topic: the broker leads only the first one."""
LAST_SNAPSHOT: Final = 2
"""The offset of the last snapshot in the log of states."""
RECORD_COUNT: Final = 4
"""The number of records that the topic has in the end."""


class ShareMember:
    """The one member of a group, with a session at the broker."""

    def __init__(self, client: RawClient, group: str, topic: bytes) -> None:
        self._client = client
        self._group = group
        self._topic = topic
        self._epoch = 0

    def begin(self) -> None:
        """Have the broker keep the state of the first partition."""
        request = InitializeShareGroupStateRequest
        state = request.InitializeStateData(self._topic, [request.PartitionData(LED, 1, 0)])
        asked = request(self._group, [state])
        response = self._client.ask(asked, InitializeShareGroupStateResponse, 0)
        assert response.results[0].partitions[0].error_code == ErrorCode.NONE

    def fetch(self, *, listed: Sequence[int] = ()) -> list[tuple[int, int]]:
        """Return the first and last offsets of what is acquired."""
        request = ShareFetchRequest
        topics = [request.FetchTopic(self._topic, [request.FetchPartition(one) for one in listed])]
        response = self._client.ask(
            request(
                self._group,
                MEMBER,
                self._epoch,
                max_wait_ms=WAIT_MS,
                min_bytes=1,
                max_bytes=MAX_BYTES,
                max_records=10,
                batch_size=10,
                topics=topics if listed else [],
            ),
            ShareFetchResponse,
            VERSION,
        )
        assert response.error_code == ErrorCode.NONE
        self._epoch += 1
        return [
            (acquired.first_offset, acquired.last_offset)
            for topic in response.responses
            for partition in topic.partitions
            for acquired in partition.acquired_records
        ]

    def acknowledge(
        self, *answers: tuple[int, int, list[int]], elsewhere: bool = False
    ) -> dict[int, int]:
        """Return the code for each partition with answers for records, of the first or of both."""
        request = ShareAcknowledgeRequest
        partitions = [
            request.AcknowledgePartition(
                one, [request.AcknowledgementBatch(*each) for each in answers]
            )
            for one in ((LED, LED_ELSEWHERE) if elsewhere else (LED,))
        ]
        renews = any(RENEW in types for _, _, types in answers)
        topic = request.AcknowledgeTopic(self._topic, partitions)
        response = self._client.ask(
            request(self._group, MEMBER, self._epoch, is_renew_ack=renews, topics=[topic]),
            ShareAcknowledgeResponse,
            VERSION,
        )
        self._epoch += 1
        return {
            one.partition_index: one.error_code
            for each in response.responses
            for one in each.partitions
        }

    def is_done(self) -> bool:
        """Return whether the group is done with all records, by its state."""
        request = ReadShareGroupStateRequest
        asked = request(
            self._group, [request.ReadStateData(self._topic, [request.PartitionData(LED, 0)])]
        )
        (result,) = self._client.ask(asked, ReadShareGroupStateResponse, 0).results
        (partition,) = result.partitions
        assert partition.error_code == ErrorCode.NONE
        return is_archived(partition, 0, RECORD_COUNT - 1)


def keep_states(broker_id: int, client: RawClient, topic: str) -> bytes:
    """Have the broker keep the states of share partitions; return the id of `topic`."""
    create_topic(client, SHARE_GROUP_STATE_TOPIC, replicas=[broker_id])
    wanted = topic_id(client, topic)
    share = SharePartitionKey(GROUP, wanted, LED)
    wait_for(lambda: serves_share(client, share), "share partitions are served")
    return wanted


def share_records(broker_id: int, client: RawClient, topic: str) -> None:
    """Get four records of `topic`, two of them at first, and give an answer of each type.

    Of the partition that is led elsewhere all is refused. In the end one record is in flight, and
    the connection has the member's session.
    """
    wanted = keep_states(broker_id, client, topic)
    member = ShareMember(client, GROUP, wanted)
    member.begin()
    assert member.fetch(listed=[LED, LED_ELSEWHERE]) == [(0, 1)]
    codes = member.acknowledge((0, 0, [ACCEPT]), elsewhere=True)
    assert codes == {LED: ErrorCode.NONE, LED_ELSEWHERE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    for value in (b"third", b"fourth"):
        assert produce(client, topic, batch(value)).error_code == ErrorCode.NONE
    assert member.fetch() == [(2, 3)]
    assert member.acknowledge((1, 3, [RELEASE, REJECT, RENEW])) == {LED: ErrorCode.NONE}
    assert member.acknowledge((3, 3, [ACCEPT])) == {LED: ErrorCode.NONE}
    assert member.fetch() == [(1, 1)]
    wait_for(
        lambda: earliest_state(client) == LAST_SNAPSHOT,
        "what nothing needs is deleted",
        otherwise=lambda: earliest_state(client),
    )


def bury_records(broker_id: int, client: RawClient, topic: str) -> None:
    """Reject all records of `topic`, in the groups with dead-letter queues, until they are gone."""
    wanted = topic_id(client, topic)
    for group, policy in QUEUES.items():
        queue = f"dlq.{group}"
        configs = {"errors.deadletterqueue.group.enable": "true", **policy}
        configure_group(client, group, {QUEUE: queue})
        create_topic(client, queue, replicas=[broker_id], configs=configs)
        # The broker that leads it knows what came before: the name of the group's queue.
        wait_until_led(client, queue)
        member = ShareMember(client, group, wanted)
        member.begin()
        assert member.fetch(listed=[LED]) == [(0, RECORD_COUNT - 1)]
        assert member.acknowledge((0, RECORD_COUNT - 1, [REJECT])) == {LED: ErrorCode.NONE}
        wait_for(member.is_done, f"{group} is done with the records")


def earliest_state(client: RawClient) -> int:
    """Return the first offset of the log of states."""
    code, offset = list_offset(client, SHARE_GROUP_STATE_TOPIC, EARLIEST)
    assert code == ErrorCode.NONE
    return offset
