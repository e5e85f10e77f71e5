"""A broker that is asked what another one is asked, and its answers without what is its own."""

import base64
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Final, cast

from tests.interop.broker_requests import SHARE_GROUP, TRANSACTIONAL_ID
from tests.interop.clients.confluent import make_topics
from tests.interop.differential.comparing import without_request
from tests.interop.differential.sides import NO_ANSWER
from tests.interop.group_script import coordinates
from tests.interop.shared_records import SharedRecords
from tests.interop.transaction_markers import without_broker_times
from tests.support.clients.driver import TopicWish
from tests.support.raw_client import RawClient
from tests.support.topics import topic_id, wait_until_led
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_to_text

INTERNAL_TOPICS: Final = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""The settings by which a broker alone has topics for groups, transactions and share groups."""
SHARE_MEMBERS_REQUESTS: Final = frozenset({ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})
"""Requests of members of share groups, which belong to a session."""
SILENCE_S: Final = 5.0
"""The time after which a real broker counts as silent, as it is to some requests."""
SILENT: Final = "nothing came in time"
_RANDOM_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class AskedBroker:
    """One of two brokers, with the id that a new topic has there."""

    def __init__(self, address: str, topic: str) -> None:
        self.address = address
        self._topic = topic
        make_topics(address, TopicWish(topic))
        with RawClient(address) as client:
            wait_until_led(client, topic)
            self.topic_id = uuid_to_text(topic_id(client, topic))
            # The first ids of producers have to be fetched from the controller.
            wait_for(lambda: _gives_producer_ids(client), "producers get ids")
            # Their topics are created with the first look for a coordinator.
            wait_for(lambda: coordinates(client), "groups are served")
            wait_for(lambda: _coordinates_transactions(client), "transactions are served")
            share = SharePartitionKey(SHARE_GROUP, topic_id(client, topic), 0)
            wait_for(lambda: serves_share(client, share), "share partitions are served")

    @cached_property
    def shared(self) -> SharedRecords:
        """The records of a share group, made when they are first asked for."""
        return SharedRecords(self.address, f"{self._topic}-shared")

    @property
    def shared_topic_id(self) -> str:
        """The id of the topic whose records are shared."""
        return uuid_to_text(self.shared.topic_id)

    @property
    def _has_shared(self) -> bool:
        return "shared" in vars(self)

    def close(self) -> None:
        """End the sessions of the share group, if there is one."""
        if self._has_shared:
            self.shared.close()

    def said(
        self,
        request: Message,
        version: int,
        patience_s: float = PATIENCE_S,
        *,
        client_id: str | None = "raw",
        own: frozenset[str],
    ) -> Json:
        """Return the answer without the fields `own`, or what says that no answer came.

        The topic's id and whatever else is random are replaced in it.
        """
        frame = encode_request_frame(
            request, version=version, correlation_id=1, client_id=client_id
        )
        assert request.API_KEY is not None
        said = self.said_to_frame(frame, request.API_KEY, version, patience_s, own=own)
        return NO_ANSWER if said == SILENT else said

    def said_to_frame(
        self, frame: bytes, key: int, version: int, patience_s: float, *, own: frozenset[str]
    ) -> Json:
        """Return the answer to a frame, that its connection was closed, or that nothing came."""
        try:
            with RawClient(self.address) as client:
                client.socket.settimeout(patience_s)
                return self.said_on(client, frame, key, version, own=own)
        except TimeoutError:
            return SILENT
        except OSError:
            return NO_ANSWER

    def said_on(
        self, client: RawClient, frame: bytes, key: int, version: int, *, own: frozenset[str]
    ) -> Json:
        """Return the answer to a frame on a connection, or that the connection was closed."""

        def answer() -> Message | None:
            client.send_frame(frame)
            answered = client.read_frame()
            if answered is None:
                return None
            kind = response_class(key)
            _, response = decode_response_frame(answered, response_class=kind, version=version)
            return response

        is_in_session = key in SHARE_MEMBERS_REQUESTS
        response = self.shared.ask_in_session(answer) if is_in_session else answer()
        return NO_ANSWER if response is None else self._common(to_json(response, version), own)

    def _common(self, value: Json, own: frozenset[str]) -> Json:
        match value:
            case dict():
                fields = cast("dict[str, Json]", value)
                return {
                    name: "<own>" if name in own else self._field(name, each, own)
                    for name, each in fields.items()
                }
            case list():
                # The order of groups and of log directories' topics is that of a hash table.
                elements = cast("Iterable[Json]", value)
                return sorted((self._common(each, own) for each in elements), key=str)
            case str():
                text = without_request(value).replace(self.topic_id, "<id>")
                if self._has_shared:
                    text = text.replace(self.shared_topic_id, "<shared id>")
                return _RANDOM_UUID.sub("<uuid>", text)
            case _:
                return value

    def _field(self, name: str, value: Json, own: frozenset[str]) -> Json:
        if name == "records" and isinstance(value, str):
            value = base64.b64encode(without_broker_times(base64.b64decode(value))).decode()
        return self._common(value, own)


def _coordinates_transactions(client: RawClient) -> bool:
    """Return whether the coordinator is found, and has loaded its transactions."""
    find = FindCoordinatorRequest(key=TRANSACTIONAL_ID, key_type=CoordinatorType.TRANSACTION.value)
    if client.ask(find, FindCoordinatorResponse, 3).error_code != ErrorCode.NONE:
        return False
    describe = DescribeTransactionsRequest([TRANSACTIONAL_ID])
    (described,) = client.ask(describe, DescribeTransactionsResponse, 0).transaction_states
    return described.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def serves_share(client: RawClient, share: SharePartitionKey) -> bool:
    """Return whether a share partition has a coordinator, whose topic is made for the question."""
    find = FindCoordinatorRequest("", CoordinatorType.SHARE.value, [share.coordinator_key])
    (found,) = client.ask(find, FindCoordinatorResponse, 6).coordinators
    if found.error_code != ErrorCode.NONE:
        return False
    part = ReadShareGroupStateSummaryRequest.PartitionData(share.partition)
    topic = ReadShareGroupStateSummaryRequest.ReadStateSummaryData(share.topic_id, [part])
    read = ReadShareGroupStateSummaryRequest(share.group_id, [topic])
    (answered,) = client.ask(read, ReadShareGroupStateSummaryResponse, 1).results
    return answered.partitions[0].error_code == ErrorCode.NONE


def _gives_producer_ids(client: RawClient) -> bool:
    answer = client.ask(InitProducerIdRequest(None, 1000), InitProducerIdResponse, 4)
    return answer.error_code == ErrorCode.NONE
