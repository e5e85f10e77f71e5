"""Transactions on a node with an authorizer: each request tells which permission is missing."""

from collections.abc import Callable, Iterator
from typing import Final

import pytest
from tests.support.raw_client import RawClient
from tests.support.topics import add_entries, create_topic, entry
from tests.support.waiting import wait_for

from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kvorum.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kvorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OF_TRANSACTIONS: Final = 1
MINE, OTHERS, SEEN = "mine", "of-another-user", "to-be-seen"
OPEN, SECRET = "open", "secret"
SECRET_GROUP: Final = "secret-group"
BOB: Final = "User:bob"
NO_TRANSACTIONAL_ID: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def client() -> Iterator[RawClient]:
    """A client of a node that lets everyone do what no entry is about.

    The topic "secret" and one transactional id are another user's; one may only be looked at.
    """
    overrides = {"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
    with Cluster(overrides=overrides) as cluster:
        with RawClient(cluster.controller_servers) as controller:
            for topic in (OPEN, SECRET):
                create_topic(controller, topic)
            kind, write = AclResourceType.TRANSACTIONAL_ID, AclOperation.WRITE
            add_entries(
                controller,
                entry(AclResourceType.TOPIC, SECRET, write, principal=BOB),
                entry(AclResourceType.GROUP, SECRET_GROUP, AclOperation.READ, principal=BOB),
                entry(kind, OTHERS, write, principal=BOB),
                entry(kind, SEEN, AclOperation.DESCRIBE),
            )
        with RawClient(cluster.bootstrap_servers) as connection:
            wait_for(lambda: find(connection, MINE) == 0, "transactions are coordinated")
            yield connection


@pytest.fixture(scope="module")
def producer(client: RawClient) -> tuple[int, int]:
    """The id and epoch of the producer that has a transactional id of its own."""
    begun = client.ask(InitProducerIdRequest(MINE, 60_000), InitProducerIdResponse, 4)
    assert begun.error_code == ErrorCode.NONE
    return begun.producer_id, begun.producer_epoch


def find(client: RawClient, name: str) -> int:
    request = FindCoordinatorRequest(name, OF_TRANSACTIONS)
    return client.ask(request, FindCoordinatorResponse, 3).error_code


def init(client: RawClient, name: str) -> int:
    request = InitProducerIdRequest(name, 60_000)
    return client.ask(request, InitProducerIdResponse, 4).error_code


def end(client: RawClient, name: str) -> int:
    return client.ask(EndTxnRequest(name, 1, 0, True), EndTxnResponse, 4).error_code


def add_offsets(client: RawClient, name: str) -> int:
    request = AddOffsetsToTxnRequest(name, 1, 0, "group")
    return client.ask(request, AddOffsetsToTxnResponse, 3).error_code


def describe(client: RawClient, name: str) -> int:
    request = DescribeTransactionsRequest([name])
    (state,) = client.ask(request, DescribeTransactionsResponse, 0).transaction_states
    return state.error_code


def add_partitions(
    client: RawClient, name: str, producer: tuple[int, int], *topics: str
) -> dict[str, int]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(topic, [0]) for topic in topics
        ],
    )
    answered = client.ask(request, AddPartitionsToTxnResponse, 3).results_by_topic_v3_and_below
    return {topic.name: topic.results_by_partition[0].partition_error_code for topic in answered}


@pytest.mark.parametrize("ask", [find, init, end, add_offsets, describe])
def test_the_transactional_id_of_another_user_is_neither_used_nor_shown(
    client: RawClient, ask: Callable[[RawClient, str], int]
) -> None:
    assert ask(client, OTHERS) == NO_TRANSACTIONAL_ID


def test_an_id_that_may_be_described_may_not_be_used_for_that(client: RawClient) -> None:
    assert [ask(client, SEEN) for ask in (find, describe)] == [
        ErrorCode.NONE,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ]
    refused = [ask(client, SEEN) for ask in (init, end, add_offsets)]
    assert refused == [NO_TRANSACTIONAL_ID] * 3
    assert add_partitions(client, SEEN, (1, 0), OPEN) == {OPEN: NO_TRANSACTIONAL_ID}


def test_a_topic_that_may_not_be_written_keeps_all_others_out_of_the_transaction(
    client: RawClient, producer: tuple[int, int]
) -> None:
    assert add_partitions(client, MINE, producer, OPEN, SECRET) == {
        OPEN: ErrorCode.OPERATION_NOT_ATTEMPTED,
        SECRET: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert add_partitions(client, MINE, producer, OPEN) == {OPEN: ErrorCode.NONE}


def test_the_offsets_of_a_group_need_a_permission_of_its_own(
    client: RawClient, producer: tuple[int, int]
) -> None:
    request = AddOffsetsToTxnRequest(MINE, *producer, SECRET_GROUP)
    refused = client.ask(request, AddOffsetsToTxnResponse, 3)
    assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_the_list_has_the_ids_that_a_client_may_describe(
    client: RawClient, producer: tuple[int, int]
) -> None:
    del producer
    listed = client.ask(ListTransactionsRequest(), ListTransactionsResponse, 1)
    assert [one.transactional_id for one in listed.transaction_states] == [MINE]
