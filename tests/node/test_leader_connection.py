"""Connections to the leader, of one epoch or any, and to a coordinator that may not answer."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from immutables import Map
from tests.support.fake_node import HOST, SILENCE, FakeNode
from tests.support.waiting import wait_for_async

from kvorum.broker.add_partitions_to_txn import (
    PartitionErrors,
    TransactionData,
    TransactionSupportedOperation,
)
from kvorum.broker.coordinators import coordinator_of_key
from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.metadata.address import Address
from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage, Endpoint
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topic_names import TRANSACTION_STATE_TOPIC
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.broker.own_broker import Handle, OwnBroker
from kvorum.node.broker.transaction_verification import AddPartitionsToTxnManager
from kvorum.node.clock import SystemClock
from kvorum.node.controller.quorum_reassignment_proxy import LeaderConnection
from kvorum.node.outbound.broker_connections import BrokerConnections
from kvorum.node.outbound.client_connection import ClientConnectionError
from kvorum.node.outbound.node_to_controller_channel_manager import NodeToControllerChannelManager
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import HandlerResponse
from kvorum.node.tasks import run
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.primitives import Message

TIMEOUT_MS = 5000
LISTENER = "BROKERS"
ME, COORDINATOR, SILENT = 1, 2, 3
TOPIC_ID = bytes(range(16))
DIRECTORY = b"d" * 16
PARTITION = TopicPartition("t", 0)
# One that hashes to 1 of two partitions, and one that hashes to 0.
SECOND_PARTITIONS, FIRST_PARTITIONS = "a", "b"
REQUEST_TIMEOUT_MS = 2000


def connection() -> LeaderConnection:
    return LeaderConnection(client_id="1", timeout_ms=TIMEOUT_MS, outgoing=Outgoing())


async def ask(leader: LeaderConnection, node: FakeNode, *, epoch: int) -> None:
    """Ask the leader of an epoch, as a node that knows its address."""
    await run(leader.open(Address(HOST, node.port), epoch=epoch))
    await run(leader.request(DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse))


async def test_requests_in_one_epoch_share_a_connection() -> None:
    leader = connection()
    async with FakeNode() as node:
        for _ in range(3):
            await ask(leader, node, epoch=1)
        assert (node.times_asked("DescribeCluster"), node.connection_count) == (3, 1)
        leader.close()
        await node.wait_until_left()


def channel(find_leader: Callable[[], Address | None]) -> NodeToControllerChannelManager:
    return NodeToControllerChannelManager(
        ME,
        "tests",
        find_leader,
        why_no_leader=lambda: "nobody leads",
        timeout_ms=TIMEOUT_MS,
        runtime=AsyncioRuntime(SystemClock(), thread_name="tests"),
        outgoing=Outgoing(),
    )


async def ask_one_after_the_other(
    before: FakeNode, after: FakeNode
) -> tuple[NodeToControllerChannelManager, asyncio.Future[DescribeClusterResponse]]:
    """Ask a leader that gives no answer yet, then the next one; return the first request too."""
    request = DescribeClusterRequest(endpoint_type=2)
    leaders = [Address(HOST, before.port)]
    to_leader = channel(lambda: leaders[-1])
    first = asyncio.ensure_future(run(to_leader.send(request, DescribeClusterResponse)))
    await wait_for_async(lambda: before.asked or None, "the first has it")
    leaders.append(Address(HOST, after.port))
    await run(to_leader.send(request, DescribeClusterResponse))
    return to_leader, first


async def test_requests_go_to_the_new_leader_while_the_one_before_is_silent() -> None:
    async with FakeNode(DescribeCluster=lambda _: SILENCE) as before, FakeNode() as after:
        to_leader, first = await ask_one_after_the_other(before, after)
        assert (before.times_asked("DescribeCluster"), after.times_asked("DescribeCluster")) == (
            1, 1,
        )  # fmt: skip
        assert before.connection_count == 1
        assert not first.done()
        to_leader.close()
        await before.wait_until_left()
        first.cancel()


async def test_what_the_leader_before_has_received_gets_its_response() -> None:
    may_answer = asyncio.Event()

    async def answer_late(frame: bytes) -> bytes | None:
        answer = await FakeNode.response_to(before, frame)
        if before.times_asked("DescribeCluster"):
            await may_answer.wait()
        return answer

    async with FakeNode() as before, FakeNode() as after:
        before.answer_frame = answer_late
        to_leader, first = await ask_one_after_the_other(before, after)
        may_answer.set()
        assert (await first).brokers[0].port == before.port
        await before.wait_until_left()
        to_leader.close()


async def test_the_end_of_a_former_leader_leaves_the_connection_to_the_next_one() -> None:
    async with FakeNode() as after:
        async with FakeNode(DescribeCluster=lambda _: SILENCE) as before:
            to_leader, first = await ask_one_after_the_other(before, after)
        await first
        assert (after.times_asked("DescribeCluster"), after.connection_count) == (2, 1)
        to_leader.close()
        await after.wait_until_left()


async def test_the_leader_of_another_epoch_gets_a_connection_and_the_one_before_loses_it() -> None:
    leader = connection()
    async with FakeNode() as before, FakeNode() as after:
        await ask(leader, before, epoch=1)
        await ask(leader, after, epoch=2)
        assert (before.times_asked("DescribeCluster"), after.times_asked("DescribeCluster")) == (
            1, 1,
        )  # fmt: skip
        await before.wait_until_left()
        assert after.connection_count == 1
        leader.close()
        await after.wait_until_left()


async def test_after_a_failure_there_is_a_new_connection() -> None:
    leader = connection()
    async with FakeNode() as node:
        await ask(leader, node, epoch=1)
        node.answer("DescribeCluster", lambda _: None)
        with pytest.raises(ClientConnectionError):
            await ask(leader, node, epoch=1)
        node.answer("DescribeCluster", lambda _: node.described_cluster())
        await ask(leader, node, epoch=1)
        leader.close()
        await node.wait_until_left()


async def test_without_a_connection_nothing_is_sent() -> None:
    with pytest.raises(ClientConnectionError, match="no connection"):
        await run(connection().request(DescribeClusterRequest(), DescribeClusterResponse))


def registered(broker_id: int, port: int, *, is_fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(
        id=broker_id,
        epoch=1,
        incarnation_id=DIRECTORY,
        listeners=(Endpoint(LISTENER, HOST, port, 0),),
        supported_features=Map(),
        rack=None,
        is_fenced=is_fenced,
        is_in_controlled_shutdown=False,
        is_migrating_zk_broker=False,
        directories=(DIRECTORY,),
        cordoned_directories=None,
    )


def image(port: int, *leaders: int, is_fenced: bool = False) -> MetadataImage:
    """Return a cluster whose partitions of ``__transaction_state`` have these leaders."""
    partitions = Partitions(
        tuple(PartitionRegistration((one,), (DIRECTORY,), (one,), leader=one) for one in leaders)
    )
    topic = TopicImage(TRANSACTION_STATE_TOPIC, TOPIC_ID, partitions)
    brokers = {
        ME: registered(ME, 1),
        SILENT: registered(SILENT, 1),
        COORDINATOR: registered(COORDINATOR, port, is_fenced=is_fenced),
    }
    return MetadataImage(
        cluster=ClusterImage(brokers=Map(brokers)),
        topics=TopicsImage(Map({TOPIC_ID: topic}), Map({topic.name: TOPIC_ID})),
    )


def data(name: str = FIRST_PARTITIONS, *, epoch: int = 0) -> TransactionData:
    operation = TransactionSupportedOperation.ADD_PARTITION
    return TransactionData(name, 7, epoch, (PARTITION,), operation)


def answered(code: ErrorCode) -> Callable[[Message], Message]:
    def answer(request: Message) -> Message:
        assert isinstance(request, AddPartitionsToTxnRequest)
        response = AddPartitionsToTxnResponse()
        for one in request.transactions:
            result = response.AddPartitionsToTxnResult(one.transactional_id)
            response.results_by_transaction.append(result)
            for topic in one.topics:
                codes = [
                    response.AddPartitionsToTxnPartitionResult(index, code)
                    for index in topic.partitions
                ]
                result.topic_results.append(
                    response.AddPartitionsToTxnTopicResult(topic.name, codes)
                )
        return response

    return answer


async def no_request_of_its_own(request: IncomingRequest[Message]) -> HandlerResponse:
    raise AssertionError(f"{request.body.NAME} is asked of the broker itself")


@asynccontextmanager
async def asking(
    current: MetadataImage,
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
    handle: Handle = no_request_of_its_own,
) -> AsyncGenerator[AddPartitionsToTxnManager]:
    versions: dict[int, tuple[int, int]] = {
        ApiKey.ADD_PARTITIONS_TO_TXN: (0, AddPartitionsToTxnRequest.MAX_VERSION)
    }
    runtime = AsyncioRuntime(SystemClock(), thread_name="transactions")
    manager = AddPartitionsToTxnManager(
        BrokerConnections(
            "asking", LISTENER, lambda: current, Outgoing(), request_timeout_ms=timeout_ms
        ),
        OwnBroker(ME, LISTENER, versions, handle=handle, runtime=runtime),
        LISTENER,
        image=lambda: current,
        runtime=runtime,
    )
    try:
        yield manager
    finally:
        manager.close()


def refused(code: ErrorCode) -> PartitionErrors:
    return {PARTITION: code}


async def test_the_coordinator_is_the_leader_of_the_partition_that_the_id_hashes_to() -> None:
    async with FakeNode(AddPartitionsToTxn=answered(ErrorCode.INVALID_TXN_STATE)) as node:
        async with asking(image(node.port, COORDINATOR, SILENT)) as manager:
            first = await run(manager.add_or_verify_transaction(data(FIRST_PARTITIONS)))
            second = await run(manager.add_or_verify_transaction(data(SECOND_PARTITIONS)))
        assert manager.refused_count == 2
        assert manager.verification_times_ms.count == 2
        assert first == refused(ErrorCode.INVALID_TXN_STATE)
        assert second == refused(ErrorCode.NETWORK_EXCEPTION), "the other leader does not listen"
        assert node.times_asked("AddPartitionsToTxn") == 1


async def test_a_broker_that_is_the_coordinator_itself_is_asked_without_a_connection() -> None:
    requests: list[Message] = []

    async def handle(request: IncomingRequest[Message]) -> HandlerResponse:
        requests.append(request.body)
        return answered(ErrorCode.INVALID_TXN_STATE)(request.body)

    async with FakeNode() as node, asking(image(node.port, ME), handle=handle) as manager:
        errors = await run(manager.add_or_verify_transaction(data()))
    assert errors == refused(ErrorCode.INVALID_TXN_STATE)
    assert [request.NAME for request in requests] == ["AddPartitionsToTxnRequest"]
    assert node.connection_count == 0


async def test_no_broker_coordinates_without_the_topic_or_its_leader() -> None:
    unavailable = refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    for current in (MetadataImage(), image(1, -1), image(1, COORDINATOR, is_fenced=True)):
        kind = CoordinatorType.TRANSACTION
        assert coordinator_of_key(current, kind, FIRST_PARTITIONS, LISTENER) is None
        async with asking(current) as manager:
            assert await run(manager.add_or_verify_transaction(data())) == unavailable


async def test_a_broker_that_offers_no_transactions_is_not_a_coordinator() -> None:
    async with FakeNode() as node, asking(image(node.port, COORDINATOR)) as manager:
        errors = await run(manager.add_or_verify_transaction(data()))
    assert errors == refused(ErrorCode.NOT_COORDINATOR)


class OldNode(FakeNode):
    """A broker that knows the question only as clients ask it."""

    def _versions(self) -> ApiVersionsResponse:
        response = super()._versions()
        response.api_keys.append(ApiVersionsResponse.ApiVersion(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 3))
        return response


async def test_a_coordinator_that_is_too_old_is_not_asked() -> None:
    async with OldNode() as node, asking(image(node.port, COORDINATOR)) as manager:
        assert await run(manager.add_or_verify_transaction(data())) == {}


@pytest.mark.parametrize("answer", [None, SILENCE], ids=["hangs up", "keeps silent"])
async def test_a_coordinator_that_does_not_answer_may_be_asked_again(
    answer: Message | None,
) -> None:
    async with (
        FakeNode(AddPartitionsToTxn=lambda _: answer) as node,
        asking(image(node.port, COORDINATOR), timeout_ms=1000) as manager,
    ):
        errors = await run(manager.add_or_verify_transaction(data()))
        assert errors == refused(ErrorCode.NETWORK_EXCEPTION)
        node.answer("AddPartitionsToTxn", answered(ErrorCode.NONE))
        assert await run(manager.add_or_verify_transaction(data())) == {}


async def test_a_coordinator_that_is_down_is_a_broken_network() -> None:
    async with FakeNode() as node:
        port = node.port
    async with asking(image(port, COORDINATOR)) as manager:
        errors = await run(manager.add_or_verify_transaction(data()))
    assert errors == refused(ErrorCode.NETWORK_EXCEPTION)


def asked_together(node: FakeNode) -> list[list[str]]:
    """Return the transactions of each request that a coordinator has got."""
    requests = [one for one in node.asked if isinstance(one, AddPartitionsToTxnRequest)]
    return [[one.transactional_id for one in request.transactions] for request in requests]


async def test_what_comes_while_one_is_asked_is_asked_together_afterwards() -> None:
    async with (
        FakeNode(AddPartitionsToTxn=answered(ErrorCode.NONE)) as node,
        asking(image(node.port, COORDINATOR)) as manager,
    ):
        names = ("one", "two", "three")
        first = asyncio.create_task(run(manager.add_or_verify_transaction(data("zero"))))
        await wait_for_async(lambda: bool(node.asked), "the first request has come")
        later = [run(manager.add_or_verify_transaction(data(name))) for name in names]
        assert await asyncio.gather(first, *later) == [{}, {}, {}, {}]
    assert asked_together(node) == [["zero"], ["one", "two", "three"]]


async def test_what_comes_in_one_turn_is_asked_together() -> None:
    async with (
        FakeNode(AddPartitionsToTxn=answered(ErrorCode.NONE)) as node,
        asking(image(node.port, COORDINATOR)) as manager,
    ):
        asking_both = [run(manager.add_or_verify_transaction(data(name))) for name in ("a", "b")]
        assert await asyncio.gather(*asking_both) == [{}, {}]
    assert asked_together(node) == [["a", "b"]]


async def test_a_broker_that_ends_answers_all_who_wait() -> None:
    async with FakeNode(AddPartitionsToTxn=lambda _: SILENCE) as node:
        async with asking(image(node.port, COORDINATOR)) as manager:
            waiting = [
                asyncio.create_task(run(manager.add_or_verify_transaction(data(name))))
                for name in ("one", "two")
            ]
            await asyncio.sleep(0)
        expected = refused(ErrorCode.NETWORK_EXCEPTION)
        assert await asyncio.gather(*waiting) == [expected, expected]
