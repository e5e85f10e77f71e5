"""Records of a share group, which every request of its member finds in the same state."""

from collections.abc import Callable
from typing import Final

from tests.interop.broker_requests import FETCHED_SHARE_GROUP, MEMBER
from tests.interop.clients.confluent import make_topics
from tests.support.clients.driver import TopicWish
from tests.support.raw_client import RawClient
from tests.support.record_requests import produce
from tests.support.topics import topic_id, wait_until_led
from tests.support.waiting import wait_for

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType
from kvorum.broker.share_session.session import FINAL_EPOCH, INITIAL_EPOCH
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import RecordData, build_batch

_HOUR_MS: Final = "3600000"
LONG_TIMES: Final = {
    "group.share.record.lock.duration.ms": _HOUR_MS,
    "group.share.max.record.lock.duration.ms": _HOUR_MS,
    "connections.max.idle.ms": _HOUR_MS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": _HOUR_MS,
}
"""The settings by which members keep what they have acquired, and transactions stay open, as long
as a test lasts: one broker may be slower than the other."""
OTHER_MEMBER: Final = "somebody"
BATCH: Final = bytes(build_batch([RecordData(b"%d" % one, None, 1, ()) for one in range(3)]))
_VERSION: Final = 1
_MAX_WAIT_MS: Final = 300
_ALL: Final = 1000


class SharedRecords:
    """A topic with one partition, and a share group with two members on a broker.

    The other member has the first batch, and keeps it: an acknowledgement of it is refused, and
    changes nothing. For each request of the member there is a new session, and another batch, which
    the member is done with afterwards.
    """

    def __init__(self, address: str, topic: str) -> None:
        self._topic = topic
        make_topics(address, TopicWish(topic))
        # Sessions end with their connection: this one stays open.
        self._client = RawClient(address)
        wait_until_led(self._client, topic)
        self.topic_id = topic_id(self._client, topic)
        self._append()
        wait_for(self._begin_state, "the share group has a state")
        wait_for(self._keep_first_batch, "the other member has the first batch")

    def close(self) -> None:
        """End the sessions."""
        self._client.socket.close()

    def ask_in_session(self, ask: Callable[[], Message | None]) -> Message | None:
        """Return what `ask` returns, which may use a session of the member at its first epoch."""
        self._append()
        began = self._fetch(ShareFetchRequest(FETCHED_SHARE_GROUP, MEMBER, INITIAL_EPOCH))
        assert began.error_code == ErrorCode.NONE, began
        answered = None
        try:
            answered = ask()
        finally:
            self._end_session(answered)
        return answered

    def _append(self) -> None:
        assert produce(self._client, self._topic, BATCH).error_code == ErrorCode.NONE

    def _begin_state(self) -> bool:
        request = InitializeShareGroupStateRequest
        topic = request.InitializeStateData(self.topic_id, [request.PartitionData(0, 1, 0)])
        answered = self._client.ask(
            request(FETCHED_SHARE_GROUP, [topic]), InitializeShareGroupStateResponse, 0
        )
        (initialized,) = answered.results
        return initialized.partitions[0].error_code == ErrorCode.NONE

    def _keep_first_batch(self) -> bool:
        """Return whether the other member has acquired the first batch."""
        request = ShareFetchRequest
        topic = request.FetchTopic(self.topic_id, [request.FetchPartition(0)])
        answered = self._fetch(
            request(
                FETCHED_SHARE_GROUP,
                OTHER_MEMBER,
                INITIAL_EPOCH,
                max_wait_ms=_MAX_WAIT_MS,
                min_bytes=1,
                max_records=_ALL,
                batch_size=_ALL,
                topics=[topic],
            )
        )
        return bool(_acquired(answered))

    def _fetch(self, request: ShareFetchRequest) -> ShareFetchResponse:
        return self._client.ask(request, ShareFetchResponse, _VERSION)

    def _end_session(self, answered: Message | None) -> None:
        """Accept what the member has acquired, and end its session if there is one.

        Nothing is left to the end of the session: what that releases comes back at a time of its
        own. A batch size that is negative is answered with a batch without records.
        """
        acquired = _acquired(answered) if isinstance(answered, ShareFetchResponse) else []
        request = ShareAcknowledgeRequest
        batches = [
            request.AcknowledgementBatch(
                one.first_offset, one.last_offset, [AcknowledgeType.ACCEPT]
            )
            for one in acquired
            if one.first_offset <= one.last_offset
        ]
        topic = request.AcknowledgeTopic(self.topic_id, [request.AcknowledgePartition(0, batches)])
        self._client.ask(
            request(FETCHED_SHARE_GROUP, MEMBER, FINAL_EPOCH, topics=[topic] if batches else []),
            ShareAcknowledgeResponse,
            _VERSION,
        )


def _acquired(answered: ShareFetchResponse) -> list[ShareFetchResponse.AcquiredRecords]:
    return [
        one
        for topic in answered.responses
        for partition in topic.partitions
        for one in partition.acquired_records
    ]
