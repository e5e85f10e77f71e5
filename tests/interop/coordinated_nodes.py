"""Nodes that coordinate transactions, at a transaction.version that a test wants."""

from typing import Final

from tests.interop.clients.confluent import make_topics
from tests.interop.transaction_script import GROUP, IDS, PARTITIONS, TOPIC
from tests.support.clients.driver import TopicWish
from tests.support.node import Node
from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kvorum.wire.records import RecordBatch, read_batches

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # The records are from 1970: a broker removes them at a time of its own.
    "log.retention.ms": "-1",
    # A transaction that is open for long is aborted by one broker sooner than by the other.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
}
OF_TRANSACTIONS: Final = 1
SAFE_DOWNGRADE: Final = 2


def prepare(node: Node, transaction_version: int) -> None:
    """Make the topics, finalize the version, and wait until everything is coordinated."""
    make_topics(node.address, TopicWish(TOPIC, partitions=PARTITIONS))
    with RawClient(node.address) as client:
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature="transaction.version",
            max_version_level=transaction_version,
            upgrade_type=SAFE_DOWNGRADE,
        )
        if transaction_version < 2:
            request = UpdateFeaturesRequest(feature_updates=[update])
            answered = client.ask(request, UpdateFeaturesResponse, 1)
            assert answered.error_code == 0, answered

        def is_coordinated() -> bool:
            found = [
                client.ask(FindCoordinatorRequest(key, kind), FindCoordinatorResponse, 3)
                for key, kind in ((IDS[0], OF_TRANSACTIONS), (GROUP, 0))
            ]
            ready = client.ask(InitProducerIdRequest(None, 1000), InitProducerIdResponse, 4)
            return all(one.error_code == 0 for one in found) and ready.error_code == 0

        node.process.wait_until(is_coordinated, "transactions have a coordinator")
        node.process.wait_until(
            lambda: all(batches(client, TOPIC, one) == [] for one in range(PARTITIONS)),
            "the partitions are led",
        )


def batches(
    client: RawClient, topic: str, partition: int, begin: int = 0
) -> list[RecordBatch] | int:
    """Return all batches of a partition that begins at an offset, or the code of the refusal."""
    found: list[RecordBatch] = []
    while True:
        # A response ends where a segment does.
        more = _fetched(client, topic, partition, found[-1].next_offset if found else begin)
        if isinstance(more, int):
            return more
        if not more:
            return found
        found += more


def _fetched(client: RawClient, topic: str, partition: int, offset: int) -> list[RecordBatch] | int:
    wish = FetchRequest.FetchPartition(partition, fetch_offset=offset, partition_max_bytes=1 << 24)
    request = FetchRequest(
        max_bytes=1 << 24, topics=[FetchRequest.FetchTopic(topic, partitions=[wish])]
    )
    (answered,) = client.ask(request, FetchResponse, 12).responses
    (one,) = answered.partitions
    if one.error_code != ErrorCode.NONE:
        return one.error_code
    return list(read_batches(one.records or b"", is_cut_allowed=True))
