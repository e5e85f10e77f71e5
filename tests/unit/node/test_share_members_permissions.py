"""Permissions of a share group's member: the question for a topic, as the authorizer logs it."""

import logging
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from immutables import Map
from tests.unit.node.permitted_clients import HOST, allowing, incoming
from tests.unit.node.share_fetch_world import ALICE, GROUP, PARTITION, ShareWorld

from kvorum.broker.share_session.session import INITIAL_EPOCH
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.authorizer_log import LOGGER_NAME
from kvorum.metadata.features import SHARE_VERSION_FEATURE, FeaturesImage
from kvorum.node.handlers import share_acknowledge, share_fetch
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kvorum.wire.messages.share_fetch import ShareFetchRequest
from kvorum.wire.primitives import Message

SECOND_EPOCH: Final = INITIAL_EPOCH + 1
DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN_ID: Final = b"none has this id"
READ_GROUP: Final = (AclOperation.READ, AclResourceType.GROUP, GROUP)


def _no_pause_ms(*_: object) -> int:
    return 0


def fetch(topic_id: bytes) -> ShareFetchRequest:
    """Return a request that has partition 1, too, and acknowledges what is in both."""
    request = ShareFetchRequest
    batches = [request.AcknowledgementBatch(0, 0, [1])]
    partitions = [
        request.FetchPartition(index, acknowledgement_batches=batches) for index in (0, 1)
    ]
    topics = [request.FetchTopic(one, partitions) for one in (topic_id, UNKNOWN_ID)]
    return request(GROUP, ALICE.member_id, SECOND_EPOCH, max_records=1, batch_size=1, topics=topics)


def acknowledge(topic_id: bytes) -> ShareAcknowledgeRequest:
    """Return a request that acknowledges what is in both partitions."""
    request = ShareAcknowledgeRequest
    batches = [request.AcknowledgementBatch(0, 0, [1])]
    partitions = [request.AcknowledgePartition(index, batches) for index in (0, 1)]
    topics = [request.AcknowledgeTopic(one, partitions) for one in (topic_id, UNKNOWN_ID)]
    return request(GROUP, ALICE.member_id, SECOND_EPOCH, topics=topics)


def broker_of(world: ShareWorld) -> BrokerServices:
    """Return the parts of a broker that a request without a readable topic uses."""
    topics = SimpleNamespace(by_id={PARTITION.topic_id: SimpleNamespace(name=PARTITION.topic)})
    features = FeaturesImage(levels=Map({SHARE_VERSION_FEATURE: 1}))
    broker = SimpleNamespace(
        loader=SimpleNamespace(published=SimpleNamespace(features=features, topics=topics)),
        share_partitions=world.manager,
        runtime=world.runtime,
        throttling=SimpleNamespace(throttle_fetch=_no_pause_ms),
        topic_stats=world.leader.topic_stats,
    )
    return cast("BrokerServices", broker)


@pytest.mark.parametrize(
    ("api", "body", "code_name"),
    [
        (share_fetch.API, fetch(PARTITION.topic_id), "acknowledge_error_code"),
        (share_acknowledge.API, acknowledge(PARTITION.topic_id), "error_code"),
    ],
)
def test_a_topic_is_asked_about_once_for_all_of_its_partitions(
    caplog: pytest.LogCaptureFixture, api: BrokerApi[Any], body: Message, code_name: str
) -> None:
    world = ShareWorld()
    world.manager.new_context(
        ALICE, INITIAL_EPOCH, None, listed=[PARTITION], forgotten=[], has_acknowledgements=False
    )
    request = incoming(body, body.MAX_VERSION, allowing(READ_GROUP))
    with caplog.at_level(logging.INFO, LOGGER_NAME):
        (answered,) = world.begin(api.answer(request, broker_of(world)))
    (refusal,) = (line for line in caplog.messages if "Denied" in line)
    assert f"operation = READ from host = {HOST} on resource = Topic:LITERAL:topic " in refusal
    assert "with resourceRefCount = 2 " in refusal
    codes = {
        topic.topic_id: {getattr(one, code_name) for one in topic.partitions}
        for topic in answered.responses
    }
    assert codes == {PARTITION.topic_id: {DENIED}, UNKNOWN_ID: {ErrorCode.UNKNOWN_TOPIC_ID}}
