"""A transaction coordinator beside a real one: equal answers, records and partitions."""

import os
from collections import Counter
from itertools import zip_longest
from random import Random
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.interop.transaction_script import GROUP, IDS, PARTITIONS, TOPIC, Answer, Script, Side
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient

from kvorum.internal_topics.coordinator_records import TRANSACTION_STATE
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kvorum.wire.records import RecordBatch, read_batches

STEPS: Final = int(os.environ.get("KVORUM_TRANSACTION_STEPS", "1500"))
SEED: Final = int(os.environ.get("KVORUM_TRANSACTION_SEED", "1"))
SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # The records are from 1970: a broker removes them at a time of its own.
    "log.retention.ms": "-1",
}
OF_TRANSACTIONS: Final = 1
SAFE_DOWNGRADE: Final = 2
COMPLETE: Final = (4, 5)
"""The numbers of the states after a transaction's end."""


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
            probe = InitProducerIdRequest("", 1000)
            ready = client.ask(InitProducerIdRequest(None, 1000), InitProducerIdResponse, 4)
            client.ask(probe, InitProducerIdResponse, 4)
            return all(one.error_code == 0 for one in found) and ready.error_code == 0

        node.process.wait_until(is_coordinated, "transactions have a coordinator")
        node.process.wait_until(
            lambda: all(batches(client, TOPIC, one) == [] for one in range(PARTITIONS)),
            "the partitions are led",
        )


def batches(client: RawClient, topic: str, partition: int) -> list[RecordBatch] | int:
    """Return all batches of a partition, or the code of the refusal."""
    wish = FetchRequest.FetchPartition(partition, fetch_offset=0, partition_max_bytes=1 << 24)
    request = FetchRequest(
        max_bytes=1 << 24, topics=[FetchRequest.FetchTopic(topic, partitions=[wish])]
    )
    (answered,) = client.ask(request, FetchResponse, 12).responses
    (one,) = answered.partitions
    if one.error_code != ErrorCode.NONE:
        return one.error_code
    return list(read_batches(one.records or b"", is_cut_allowed=True))


def transaction_log(side: Side) -> Answer:
    """Return the records of the coordinator, with what depends on the broker replaced."""
    found = batches(side.client, TRANSACTION_STATE.name, 0)
    assert not isinstance(found, int)
    return [
        (
            *(batch.base_offset, batch.base_sequence, batch.producer_id, batch.is_transactional),
            [_record(side, one.key, one.value) for one in batch.records()],
        )
        for batch in found
    ]


def _record(side: Side, key: bytes | None, value: bytes | None) -> Answer:
    assert key is not None
    shown = TRANSACTION_STATE.decode_key(key).fields
    if value is None:
        return shown, None
    version, fields = TRANSACTION_STATE.decode_value(0, value)
    for name in ("producerId", "previousProducerId", "nextProducerId"):
        if name in fields:
            fields[name] = side.number(fields[name])
    started = fields.pop("transactionStartTimestampMs")
    updated = fields.pop("transactionLastUpdateTimestampMs")
    for topic in fields["transactionPartitions"] or ():
        topic["partitionIds"].sort()
    if fields["transactionPartitions"]:
        fields["transactionPartitions"].sort(key=lambda topic: topic["topic"])
    # An abort without partitions may be complete within the millisecond in which it begins.
    is_complete = fields["transactionStatus"] in COMPLETE
    return shown, version, fields, started > 0, is_complete or started == updated


def topic_log(side: Side, topic: str, partition: int) -> Answer:
    found = batches(side.client, topic, partition)
    assert not isinstance(found, int)
    return [
        (
            *(batch.base_offset, side.number(batch.producer_id), batch.producer_epoch),
            *(batch.base_sequence, batch.is_transactional, batch.is_control),
            [record.key for record in batch.records()],
        )
        for batch in found
    ]


def looks(side: Side) -> Answer:
    """Return all that the steps have left behind."""
    data = [topic_log(side, TOPIC, partition) for partition in range(PARTITIONS)]
    return transaction_log(side), *data, topic_log(side, "__consumer_offsets", 0)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("transaction_version", [2, 1, 0])
def test_the_same_requests_have_the_same_answers(
    both_nodes: BothNodes, transaction_version: int
) -> None:
    seen: Counter[tuple[str, Any]] = Counter()
    with both_nodes(SETTINGS) as (theirs, ours):
        for node in (theirs, ours):
            prepare(node, transaction_version)
        with RawClient(theirs.address) as judge, RawClient(ours.address) as client:
            sides = Side(judge), Side(client)
            script = Script(Random(SEED), has_flexible_records=transaction_version > 0)
            differing: list[str] = []
            for number, (text, step) in enumerate(script.steps(STEPS)):
                expected, found = map(step, sides)
                if found != expected:
                    differing.append(f"step {number}: {text}\n  ours {found}\n  real {expected}")
                for side in sides:
                    side.settle()
                seen[text.split(maxsplit=1)[0], str(expected)[:8]] += 1
            assert not differing, f"{len(differing)} of seed {SEED}\n" + "\n".join(differing[:20])
            for expected, found in zip(looks(sides[0]), looks(sides[1]), strict=True):
                differing += [
                    f"ours {one}\n  real {other}"
                    for one, other in zip_longest(found, expected)
                    if one != other
                ]
            assert not differing, f"{len(differing)} in the logs\n" + "\n".join(differing[:10])
