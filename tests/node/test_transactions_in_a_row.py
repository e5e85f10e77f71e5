"""Transactions of one producer, each begun before the markers of the one before are written."""

from itertools import count

from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import BatchOptions, RecordData, build_batch

TOPIC, ID = "t", "payments"
OF_TRANSACTIONS = 1
TRANSACTIONS = 20
AN_HOUR_MS = 3_600_000


def begin(client: RawClient) -> tuple[int, int]:
    """Return the producer id and the epoch of the transactional id."""

    def is_coordinated() -> bool:
        request = FindCoordinatorRequest(key=ID, key_type=OF_TRANSACTIONS)
        return client.ask(request, FindCoordinatorResponse, 3).error_code == ErrorCode.NONE

    def begun() -> InitProducerIdResponse | None:
        response = client.ask(InitProducerIdRequest(ID, 60_000), InitProducerIdResponse, 5)
        return response if response.error_code == ErrorCode.NONE else None

    wait_for(is_coordinated, "the id has a coordinator")
    response = wait_for(begun, "the producer has an id")
    return response.producer_id, response.producer_epoch


def produce(client: RawClient, producer_id: int, epoch: int) -> int:
    """Send the first batch of a transaction; return its code."""
    options = BatchOptions(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=0, is_transactional=True
    )
    records = bytes(build_batch([RecordData(b"value", None, 1)], options))
    partition = ProduceRequest.PartitionProduceData(0, records)
    topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[partition])
    response = client.ask(ProduceRequest(ID, -1, 5_000, [topic]), ProduceResponse, 12)
    return response.responses[0].partition_responses[0].error_code


def test_a_first_batch_goes_on_at_the_end_of_the_transaction_before() -> None:
    """Without being told of that end it would ask again after an hour."""
    overrides = {
        "add.partitions.to.txn.retry.backoff.ms": AN_HOUR_MS,
        "add.partitions.to.txn.retry.backoff.max.ms": AN_HOUR_MS,
    }
    with Cluster(overrides=overrides) as cluster, RawClient(cluster.bootstrap_servers) as client:
        create_topic(client, TOPIC)
        producer_id, epoch = begin(client)
        for number in count(1):
            assert produce(client, producer_id, epoch) == ErrorCode.NONE
            if number == TRANSACTIONS:
                return
            request = EndTxnRequest(ID, producer_id, epoch, committed=True)
            ended = client.ask(request, EndTxnResponse, 5)
            assert ended.error_code == ErrorCode.NONE
            producer_id, epoch = ended.producer_id, ended.producer_epoch
