"""A share group that gives every metric of its records something to measure."""

from collections.abc import Sequence
from typing import Final

from tests.interop.asked_broker import serves_share
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, list_offset, produce
from tests.support.topics import create_topic, topic_id
from tests.support.waiting import wait_for

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.topic_names import SHARE_GROUP_STATE_TOPIC
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
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


def begin(broker_id: int, client: RawClient, topic: str) -> bytes:
    """Have the broker keep the state of the first partition; return the topic's id."""
    create_topic(client, SHARE_GROUP_STATE_TOPIC, replicas=[broker_id])
    wanted = topic_id(client, topic)
    share = SharePartitionKey(GROUP, wanted, LED)
    wait_for(lambda: serves_share(client, share), "share partitions are served")
    request = InitializeShareGroupStateRequest
    state = request.InitializeStateData(wanted, [request.PartitionData(LED, 1, 0)])
    response = client.ask(request(GROUP, [state]), InitializeShareGroupStateResponse, 0)
    assert response.results[0].partitions[0].error_code == ErrorCode.NONE
    return wanted


def share_records(broker_id: int, client: RawClient, topic: str) -> None:
    """Get four records of `topic`, two of them at first, and give an answer of each type.

    Of the partition that is led elsewhere all is refused. In the end one record is in flight, and
    the connection has the member's session.
    """
    wanted = begin(broker_id, client, topic)
    assert fetched(client, wanted, 0, listed=[LED, LED_ELSEWHERE]) == [(0, 1)]
    accepted = {LED: [(0, 0, [ACCEPT])], LED_ELSEWHERE: [(0, 0, [ACCEPT])]}
    codes = acknowledged(client, wanted, 1, accepted)
    assert codes == {LED: ErrorCode.NONE, LED_ELSEWHERE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    for value in (b"third", b"fourth"):
        assert produce(client, topic, batch(value)).error_code == ErrorCode.NONE
    assert fetched(client, wanted, 2) == [(2, 3)]
    answers = {LED: [(1, 3, [RELEASE, REJECT, RENEW])]}
    assert acknowledged(client, wanted, 3, answers) == {LED: ErrorCode.NONE}
    assert acknowledged(client, wanted, 4, {LED: [(3, 3, [ACCEPT])]}) == {LED: ErrorCode.NONE}
    assert fetched(client, wanted, 5) == [(1, 1)]
    wait_for(
        lambda: earliest_state(client) == LAST_SNAPSHOT,
        "what nothing needs is deleted",
        otherwise=lambda: earliest_state(client),
    )


def fetched(
    client: RawClient, wanted: bytes, epoch: int, *, listed: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Return the first and last offsets of what is acquired in the session of an epoch."""
    request = ShareFetchRequest
    topics = [request.FetchTopic(wanted, [request.FetchPartition(one) for one in listed])]
    response = client.ask(
        request(
            GROUP,
            MEMBER,
            epoch,
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
    return [
        (acquired.first_offset, acquired.last_offset)
        for topic in response.responses
        for partition in topic.partitions
        for acquired in partition.acquired_records
    ]


def acknowledged(
    client: RawClient,
    wanted: bytes,
    epoch: int,
    answers: dict[int, list[tuple[int, int, list[int]]]],
) -> dict[int, int]:
    """Return the code for each partition with answers for records."""
    request = ShareAcknowledgeRequest
    partitions = [
        request.AcknowledgePartition(one, [request.AcknowledgementBatch(*each) for each in batches])
        for one, batches in answers.items()
    ]
    renews = any(RENEW in types for batches in answers.values() for _, _, types in batches)
    topic = request.AcknowledgeTopic(wanted, partitions)
    response = client.ask(
        request(GROUP, MEMBER, epoch, is_renew_ack=renews, topics=[topic]),
        ShareAcknowledgeResponse,
        VERSION,
    )
    return {
        one.partition_index: one.error_code
        for each in response.responses
        for one in each.partitions
    }


def earliest_state(client: RawClient) -> int:
    """Return the first offset of the log of states."""
    code, offset = list_offset(client, SHARE_GROUP_STATE_TOPIC, EARLIEST)
    assert code == ErrorCode.NONE
    return offset
