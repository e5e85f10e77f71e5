"""Answers out of an image: Metadata, DescribeCluster, DescribeTopicPartitions and others."""

from dataclasses import replace

import pytest
from tests.support.controller_under_test import ControllerUnderTest, started_cluster

from kvorum.broker.view_api import BrokerView
from kvorum.broker.views.describe_cluster import describe_cluster
from kvorum.broker.views.describe_topic_partitions import describe_topic_partitions
from kvorum.broker.views.describe_user_scram_credentials import describe_user_scram_credentials
from kvorum.broker.views.list_config_resources import list_config_resources
from kvorum.broker.views.metadata import metadata
from kvorum.metadata.acl_codes import (
    WILDCARD,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.acls_image import AclsImage, replay_access_control_entry
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import UNRESTRICTED, Access, AuthorizerRules, Principal
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest
from kvorum.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kvorum.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kvorum.wire.messages.list_config_resources import ListConfigResourcesRequest
from kvorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.uuid_text import ZERO_UUID

Cursor = DescribeTopicPartitionsRequest.Cursor
VIEW = BrokerView(
    node_id=1, cluster_id="cluster", listener="PLAIN", access=UNRESTRICTED, api_version=13
)


@pytest.fixture
def controller() -> ControllerUnderTest:
    cluster = started_cluster(brokers=3)
    cluster.create_topic("a", partitions=3, replicas=3)
    cluster.create_topic("b", partitions=2, replicas=3)
    return cluster


def named(*names: str | None, auto_create: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=auto_create,
    )


def ask(
    controller: ControllerUnderTest, request: MetadataRequest, view: BrokerView = VIEW
) -> MetadataResponse:
    response = metadata(controller.image, request, view).response
    version = view.api_version
    MetadataResponse.decode(response.encode(version), version)
    return response


def topic(response: MetadataResponse, name: str) -> MetadataResponseTopic:
    (found,) = [topic for topic in response.topics if topic.name == name]
    return found


def test_everything(controller: ControllerUnderTest) -> None:
    response = ask(controller, MetadataRequest(topics=None))
    assert [(b.node_id, b.host, b.port, b.rack) for b in response.brokers] == [
        (1, "host-1", 9001, None),
        (2, "host-2", 9002, None),
        (3, "host-3", 9003, None),
    ]
    assert response.cluster_id == "cluster"
    assert response.controller_id == 1
    assert [t.name for t in response.topics] == ["a", "b"]
    a = topic(response, "a")
    assert a.topic_id == controller.image.topics.ids["a"]
    assert [p.partition_index for p in a.partitions] == [0, 1, 2]
    for p in a.partitions:
        assert (p.error_code, p.leader_id, p.leader_epoch) == (0, p.replica_nodes[0], 0)
        assert p.isr_nodes == p.replica_nodes
        assert p.offline_replicas == []


def test_no_topics_at_all(controller: ControllerUnderTest) -> None:
    assert ask(controller, named()).topics == []
    old = replace(VIEW, api_version=0)
    assert len(ask(controller, MetadataRequest(topics=[]), old).topics) == 2


def test_topics_that_are_not_there(controller: ControllerUnderTest) -> None:
    response = ask(controller, named("no", "b", "b", "a b", "__consumer_offsets"))
    assert [(t.name, t.error_code, t.is_internal) for t in response.topics] == [
        ("b", 0, False),
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        ("__consumer_offsets", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
    ]


@pytest.mark.parametrize(
    ("asks", "may", "expected"), [(True, True, ("no",)), (False, True, ()), (True, False, ())]
)
def test_topics_that_are_to_be_created(
    controller: ControllerUnderTest, expected: tuple[str, ...], *, asks: bool, may: bool
) -> None:
    view = replace(VIEW, is_auto_create_enabled=may)
    request = named("no", "b", "a b", auto_create=asks)
    assert metadata(controller.image, request, view).topics_to_create == expected


def test_who_may_not_create_topics_does_not_hear_of_names(
    controller: ControllerUnderTest,
) -> None:
    entry = AccessControlEntryRecord(
        id=ZERO_UUID,
        resource_type=AclResourceType.TOPIC,
        resource_name=WILDCARD,
        pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host=WILDCARD,
        operation=AclOperation.DESCRIBE,
        permission_type=PermissionType.ALLOW,
    )
    acls = replay_access_control_entry(AclsImage(), entry)
    access = Access(AuthorizerRules(), acls, Principal("User", "alice"), "host")
    view = replace(VIEW, is_auto_create_enabled=True, access=access)
    found = metadata(controller.image, named("no", "b", "a b", auto_create=True), view)
    assert found.topics_to_create == ()
    assert [(topic.name, topic.error_code) for topic in found.response.topics] == [
        ("b", ErrorCode.NONE),
        ("no", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("a b", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]


def test_topics_by_id(controller: ControllerUnderTest) -> None:
    ids = controller.image.topics.ids
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(topic_id=ids["b"], name=None),
            MetadataRequestTopic(topic_id=b"u" * 16, name=None),
            MetadataRequestTopic(topic_id=ZERO_UUID, name="a"),
        ]
    )
    assert [(t.name, t.topic_id, t.error_code) for t in ask(controller, request).topics] == [
        (None, b"u" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
        ("b", ids["b"], 0),
    ]


@pytest.mark.parametrize(
    ("request_topic", "message"),
    [
        (MetadataRequestTopic(name=None), "Topic name can not be null for version 11"),
        (
            MetadataRequestTopic(name="a", topic_id=b"u" * 16),
            "Topic IDs are not supported in requests for version 11",
        ),
    ],
)
def test_what_old_versions_cannot_ask(
    controller: ControllerUnderTest, request_topic: MetadataRequestTopic, message: str
) -> None:
    view = replace(VIEW, api_version=11)
    with pytest.raises(RequestError) as caught:
        metadata(controller.image, MetadataRequest(topics=[request_topic]), view)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REQUEST, message)


def fence(controller: ControllerUnderTest, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        controller.heartbeat(broker_id, want_fence=True)


def test_a_fenced_broker_is_offline_and_not_listed(controller: ControllerUnderTest) -> None:
    fence(controller, 2)
    response = ask(controller, named("a"))
    assert [b.node_id for b in response.brokers] == [1, 3]
    for p in topic(response, "a").partitions:
        assert p.offline_replicas == [2]
        assert sorted(p.replica_nodes) == [1, 2, 3]
        assert 2 not in p.isr_nodes
        assert p.leader_id != 2


@pytest.mark.parametrize(("api_version", "code"), [(13, 0), (0, 9)])
def test_the_oldest_version_hides_brokers_it_cannot_name(
    controller: ControllerUnderTest, api_version: int, code: int
) -> None:
    fence(controller, 2)
    response = ask(controller, named("a"), replace(VIEW, api_version=api_version))
    for p in topic(response, "a").partitions:
        assert p.error_code == code
        assert (2 in p.replica_nodes) is (api_version > 0)


@pytest.mark.parametrize(("leader_id", "named"), [(3, 3), (2, 1), (100, 1), (None, 1)])
def test_the_controller_that_is_named_is_always_the_same_one(
    controller: ControllerUnderTest, leader_id: int | None, named: int
) -> None:
    """It is the leader of the quorum if that is a live broker, else the lowest live broker."""
    fence(controller, 2)
    view = replace(VIEW, quorum_leader_id=leader_id)
    response = ask(controller, MetadataRequest(topics=None), view)
    described = describe_cluster(controller.image, DescribeClusterRequest(), view)
    assert response.controller_id == described.controller_id == named


def test_partitions_without_leader(controller: ControllerUnderTest) -> None:
    fence(controller, 1, 2, 3)
    response = ask(controller, named("a"))
    assert response.controller_id == -1
    assert response.brokers == []
    for p in topic(response, "a").partitions:
        assert (p.error_code, p.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


@pytest.mark.parametrize(
    ("api_version", "code"),
    [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)],
)
def test_a_leader_without_the_listener(
    controller: ControllerUnderTest, api_version: int, code: ErrorCode
) -> None:
    response = ask(controller, named("a"), replace(VIEW, api_version=api_version, listener="OTHER"))
    assert response.brokers == []
    assert {p.error_code for p in topic(response, "a").partitions} == {code}


def test_a_failed_directory_makes_its_replica_offline(controller: ControllerUnderTest) -> None:
    broker = controller.image.cluster.brokers[3]
    controller.commit(((BrokerRegistrationChangeRecord(3, broker.epoch, log_dirs=[b"z" * 16]), 2),))
    for p in topic(ask(controller, named("a")), "a").partitions:
        assert p.offline_replicas == [3]


def test_authorized_operations(controller: ControllerUnderTest) -> None:
    request = MetadataRequest(
        topics=None,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    response = ask(controller, request, replace(VIEW, api_version=8))
    assert response.cluster_authorized_operations == 8096
    assert {t.topic_authorized_operations for t in response.topics} == {3576}


def test_describe_cluster(controller: ControllerUnderTest) -> None:
    fence(controller, 2)
    response = describe_cluster(controller.image, DescribeClusterRequest(), VIEW)
    assert (response.cluster_id, response.endpoint_type, response.error_code) == ("cluster", 1, 0)
    assert response.controller_id == 1
    assert [(b.broker_id, b.host, b.port, b.is_fenced) for b in response.brokers] == [
        (1, "host-1", 9001, False),
        (3, "host-3", 9003, False),
    ]
    everybody = DescribeClusterRequest(
        include_fenced_brokers=True, include_cluster_authorized_operations=True
    )
    response = describe_cluster(controller.image, everybody, VIEW)
    is_fenced = {broker.broker_id: broker.is_fenced for broker in response.brokers}
    assert is_fenced == {1: False, 2: True, 3: False}
    assert response.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "api_version", "code"), [(2, 1, 114), (3, 1, 115), (2, 0, 42)]
)
def test_describe_cluster_asked_for_something_else(
    controller: ControllerUnderTest, endpoint_type: int, api_version: int, code: int
) -> None:
    view = replace(VIEW, api_version=api_version)
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    response = describe_cluster(controller.image, request, view)
    assert (response.error_code, response.brokers) == (code, [])


def described(
    controller: ControllerUnderTest, *names: str, cursor: Cursor | None = None, limit: int = 2000
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name) for name in names],
        response_partition_limit=limit,
        cursor=cursor,
    )
    return describe_topic_partitions(controller.image, request, VIEW)


def pages(
    controller: ControllerUnderTest, limit: int, *names: str
) -> list[list[tuple[str | None, list[int]]]]:
    """Follow the cursors from page to page."""
    cursor: Cursor | None = None
    found: list[list[tuple[str | None, list[int]]]] = []
    while True:
        response = described(controller, *names, cursor=cursor, limit=limit)
        assert DescribeTopicPartitionsResponse.decode(response.encode(0), 0) == response
        found.append([(t.name, [p.partition_index for p in t.partitions]) for t in response.topics])
        at = response.next_cursor
        if at is None:
            return found
        cursor = Cursor(at.topic_name, at.partition_index)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (100, [[("a", [0, 1, 2]), ("b", [0, 1])]]),
        (4, [[("a", [0, 1, 2]), ("b", [0])], [("b", [1])]]),
        (3, [[("a", [0, 1, 2])], [("b", [0, 1])]]),
        (2, [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("b", [1])]]),
        (0, [[("a", [0])], [("a", [1])], [("a", [2])], [("b", [0])], [("b", [1])]]),
    ],
)
def test_pages_of_partitions(
    controller: ControllerUnderTest, limit: int, expected: list[list[tuple[str, list[int]]]]
) -> None:
    assert pages(controller, limit) == expected
    assert pages(controller, limit, "b", "a") == expected


def test_partitions_of_topics_that_are_not_there(controller: ControllerUnderTest) -> None:
    response = described(controller, "no", "a b", "b")
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("b", 0),
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert {t.topic_authorized_operations for t in response.topics} == {3576}


@pytest.mark.parametrize(
    ("cursor", "message"),
    [
        (
            Cursor("b", 0),
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic: b",
        ),
        (
            Cursor("a", -1),
            (
                "DescribeTopicPartitionsRequest cursor partition must be valid: "
                "Cursor(topicName='a', partitionIndex=-1)"
            ),
        ),
    ],
)
def test_cursors_that_make_no_sense(
    controller: ControllerUnderTest, cursor: Cursor, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        described(controller, "a", cursor=cursor)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REQUEST, message)


def test_eligible_leaders_are_shown(controller: ControllerUnderTest) -> None:
    controller.commit(((ConfigRecord(4, "", "min.insync.replicas", "3"), 0),))
    fence(controller, 2)
    for answered in described(controller).topics:
        for p in answered.partitions:
            assert p.eligible_leader_replicas == [2]
            assert p.offline_replicas == [2]


def test_resources_that_have_configuration(controller: ControllerUnderTest) -> None:
    controller.commit(
        (
            (ConfigRecord(16, "sub", "interval.ms", "100"), 0),
            (ConfigRecord(32, "group", "consumer.session.timeout.ms", "50000"), 0),
        )
    )

    def listed(api_version: int, *types: int) -> list[tuple[int, str]]:
        view = replace(VIEW, api_version=api_version)
        request = ListConfigResourcesRequest(resource_types=list(types))
        response = list_config_resources(controller.image, request, view)
        response.encode(api_version)
        if response.error_code:
            return [(response.error_code, "")]
        return [(r.resource_type, r.resource_name) for r in response.config_resources]

    assert listed(0) == [(16, "sub")]
    assert listed(1, 2) == [(2, "a"), (2, "b")]
    assert listed(1, 4) == [(4, "1"), (4, "2"), (4, "3")]
    assert len(listed(1)) == 2 + 3 + 3 + 1 + 1
    assert listed(1, 32) == [(32, "group")]
    assert listed(1, 3) == [(35, "")]


def test_a_user_without_an_error_has_an_empty_text_and_not_null() -> None:
    record = UserScramCredentialRecord(name="known", mechanism=1, iterations=4096)
    image = MetadataImage().apply(record, 0, 0)
    users = [DescribeUserScramCredentialsRequest.UserName(name) for name in ("known", "unknown")]
    request = DescribeUserScramCredentialsRequest(users=users)
    response = describe_user_scram_credentials(image, request, VIEW)
    assert [(one.user, one.error_code, one.error_message) for one in response.results] == [
        ("known", 0, ""),
        ("unknown", 91, "Attempt to describe a user credential that does not exist: unknown"),
    ]
