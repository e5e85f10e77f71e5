"""Heartbeats of consumer groups that need no group to be refused: Kafka's service and ours."""

from collections import Counter
from random import Random

import pytest
from tests.support.kafka.java import Java

from kvorum.groups.consumer_group.heartbeat_checks import check_heartbeat
from kvorum.metadata.api import RequestError
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

pytestmark = pytest.mark.sample

REQUESTS = 3000
BLANK = ("", " ", "\t\u0001", "\u2003")
"""Texts of which Java's trim leaves nothing, but for the last one."""


def random_id(source: Random) -> str:
    return source.choice(BLANK) if source.random() < 0.1 else "x"


def random_optional_id(source: Random) -> str | None:
    return None if source.random() < 0.5 else random_id(source)


def random_request(source: Random, version: int) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=random_id(source),
        member_id=random_id(source),
        member_epoch=source.choice((0, 0, 0, 1, -1, -2, -3)),
        instance_id=random_optional_id(source),
        rack_id=random_optional_id(source),
        rebalance_timeout_ms=source.choice((-1, 0, 5, 5)),
        subscribed_topic_names=source.choice((None, ["t"], [])),
        subscribed_topic_regex=source.choice((None, "", "t.*")) if version else None,
        server_assignor=source.choice((None, None, "range", "sticky", "")),
        topic_partitions=source.choice(
            (None, [], [], [ConsumerGroupHeartbeatRequest.TopicPartitions(partitions=[1])])
        ),
    )


def our_verdict(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]
) -> str:
    try:
        check_heartbeat(request, version, assignors)
    except RequestError as refusal:
        return f"{int(refusal.code)} {refusal.message}"
    return "="


def test_requests_are_refused_as_by_kafka(java: Java) -> None:
    source = Random(68)
    asked: list[str] = []
    ours: list[str] = []
    for _ in range(REQUESTS):
        version = source.choice((0, 1))
        assignors = source.choice((("uniform", "range"), ("range", "uniform"), ("uniform",)))
        request = random_request(source, version)
        asked.append(f"{','.join(assignors)} {version} {request.encode(version).hex()}")
        ours.append(our_verdict(request, version, assignors))
    assert ours == java.answers("HeartbeatJudge", asked=asked)
    assert len(Counter(ours)) > 10
