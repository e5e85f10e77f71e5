"""DeleteTopics and CreatePartitions with every refusal, and the quota on mutations."""

from dataclasses import replace

import pytest
from immutables import Map
from tests.support.controller_under_test import ControllerUnderTest, started_cluster

from kvorum.controller.apis.create_partitions import model_partition
from kvorum.controller.controller_mutation_quota import (
    CONTROLLER_MUTATION_RATE,
    BucketKey,
    MutationLimits,
    MutationQuota,
    MutationQuotas,
)
from kvorum.metadata.api import RequestError
from kvorum.metadata.configs_image import ClientQuotasImage, QuotaEntity
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.uuid_text import ZERO_UUID

Assignment = CreatePartitionsRequest.CreatePartitionsAssignment
Topic = CreatePartitionsRequest.CreatePartitionsTopic
State = DeleteTopicsRequest.DeleteTopicState
Answer = tuple[str | None, bytes, int, str | None]
UNKNOWN_TOPIC = "This server does not host this topic-partition."
UNKNOWN_ID = "This server does not host this topic ID."
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
CLIENT, USER = "client-id", "user"


def delete(controller: ControllerUnderTest, *topics: State) -> set[Answer]:
    response = controller.answer(DeleteTopicsResponse, DeleteTopicsRequest(topics=list(topics)))
    return {
        (result.name, result.topic_id, result.error_code, result.error_message)
        for result in response.responses
    }


@pytest.fixture
def controller() -> ControllerUnderTest:
    cluster = started_cluster()
    for name in ("a", "b", "c"):
        cluster.create_topic(name, partitions=2, replicas=2)
    return cluster


def test_delete_by_name_and_by_id(controller: ControllerUnderTest) -> None:
    ids = controller.image.topics.ids
    answers = delete(controller, State(name="a"), State(name=None, topic_id=ids["b"]))
    assert answers == {("a", ids["a"], 0, None), ("b", ids["b"], 0, None)}
    assert {*map(type, controller.written)} == {RemoveTopicRecord}
    assert set(controller.image.topics.ids) == {"c"}


def test_old_versions_delete_by_name_alone(controller: ControllerUnderTest) -> None:
    request = DeleteTopicsRequest(topic_names=["a", "no"])
    response = controller.answer(DeleteTopicsResponse, request, api_version=5)
    codes = {result.name: result.error_code for result in response.responses}
    assert codes == {"a": ErrorCode.NONE, "no": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_deletions_that_are_refused(controller: ControllerUnderTest) -> None:
    a, b, c = (controller.image.topics.ids[name] for name in "abc")
    stranger = bytes([9] * 16)
    answers = delete(
        controller,
        State(name=None, topic_id=ZERO_UUID),
        State(name="c", topic_id=c),
        State(name="twice"),
        State(name="twice"),
        State(name=None, topic_id=a),
        State(name=None, topic_id=a),
        State(name="a"),
        State(name=None, topic_id=b),
        State(name="b"),
        State(name="no"),
        State(name=None, topic_id=stranger),
    )
    invalid = int(ErrorCode.INVALID_REQUEST)
    supplied = "The provided topic name maps to an ID that was already supplied."
    assert answers == {
        (None, ZERO_UUID, invalid, "Neither topic name nor id were specified."),
        ("c", c, invalid, "You may not specify both topic name and topic id."),
        ("twice", ZERO_UUID, invalid, "Duplicate topic name."),
        (None, a, invalid, "Duplicate topic id."),
        ("a", a, invalid, supplied),
        ("b", b, invalid, supplied),
        ("no", ZERO_UUID, 3, UNKNOWN_TOPIC),
        (None, stranger, 100, UNKNOWN_ID),
    }
    assert controller.last_records == ()


@pytest.mark.parametrize(
    ("deletion", "api_version", "code"),
    [
        (DeleteTopicsRequest(topic_names=["a"]), 2, ErrorCode.INVALID_REQUEST),
        (DeleteTopicsRequest(topics=[State(name="a")]), 6, ErrorCode.TOPIC_DELETION_DISABLED),
    ],
)
def test_deletion_switched_off(
    controller: ControllerUnderTest,
    deletion: DeleteTopicsRequest,
    api_version: int,
    code: ErrorCode,
) -> None:
    controller.settings = replace(controller.settings, is_topic_deletion_enabled=False)
    response = controller.answer(DeleteTopicsResponse, deletion, api_version)
    assert [result.error_code for result in response.responses] == [code]
    assert "a" in controller.image.topics.ids


def add(
    controller: ControllerUnderTest, *topics: Topic, validate_only: bool = False
) -> list[tuple[str, int, str | None]]:
    response = controller.answer(
        CreatePartitionsResponse,
        CreatePartitionsRequest(topics=list(topics), validate_only=validate_only),
    )
    return [(r.name, r.error_code, r.error_message) for r in response.results]


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (Topic("no", 3, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (Topic("a", 2, None), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            Topic("a", 1, None),
            ErrorCode.INVALID_PARTITIONS,
            "The topic a currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            Topic("a", -5, None),
            ErrorCode.INVALID_PARTITIONS,
            "The topic a currently has 2 partition(s); -5 would not be an increase.",
        ),
        (
            Topic("a", 4, [Assignment([1, 2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            Topic("a", 3, [Assignment([1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            (
                "The manual partition assignment includes a partition with 1 replica(s), but this "
                "is not consistent with previous partitions, which have 2 replica(s)."
            ),
        ),
        (
            Topic("a", 3, [Assignment([1, 7])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
    ],
)
def test_partitions_that_are_refused(
    controller: ControllerUnderTest, topic: Topic, code: ErrorCode, message: str | None
) -> None:
    assert add(controller, topic) == [(topic.name, code, message)]
    assert controller.last_records == ()


def test_too_many_partitions_refuse_the_whole_request(controller: ControllerUnderTest) -> None:
    message = "Excessively large number of additional partitions per request."
    refused = (ErrorCode.POLICY_VIOLATION, message)
    topics = Topic("a", 6_002, None), Topic("b", 4_003, None), Topic("no", 3, None)
    assert add(controller, *topics) == [(topic.name, *refused) for topic in topics]
    assert controller.last_records == ()


def test_partitions_of_a_topic_whose_brokers_are_all_fenced(
    controller: ControllerUnderTest,
) -> None:
    for broker_id in (1, 2, 3):
        controller.heartbeat(broker_id, want_fence=True)
    problem = "All brokers are currently fenced, or have all their log directories cordoned."
    answer = ("a", ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    assert add(controller, Topic("a", 3, None)) == [answer]
    problem = (
        "All brokers specified in the manual partition assignment for partition 2 are fenced or in "
        "controlled shutdown."
    )
    answer = ("a", ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    assert add(controller, Topic("a", 3, [Assignment([1, 2])])) == [answer]


def test_added_partitions(controller: ControllerUnderTest) -> None:
    answers = add(controller, Topic("a", 5, None), Topic("b", 3, [Assignment([3, 1])]))
    assert answers == [("a", 0, None), ("b", 0, None)]
    records = [m for m in controller.written if isinstance(m, PartitionRecord)]
    assert [record.partition_id for record in records] == [2, 3, 4, 2]
    assert all(len(record.replicas) == 2 for record in records)
    assert (records[-1].replicas, records[-1].leader) == ([3, 1], 3)
    topic = controller.image.topics.by_name("a")
    assert topic is not None
    assert sorted(topic.partitions) == [0, 1, 2, 3, 4]


def test_names_that_come_twice_are_refused_first(controller: ControllerUnderTest) -> None:
    answers = add(controller, Topic("a", 3, None), Topic("b", 3, None), Topic("a", 4, None))
    assert answers == [("a", ErrorCode.INVALID_REQUEST, "Duplicate topic name."), ("b", 0, None)]


def test_validate_only_partitions(controller: ControllerUnderTest) -> None:
    assert add(controller, Topic("a", 3, None), validate_only=True) == [("a", 0, None)]
    assert controller.last_records == ()


@pytest.mark.parametrize(
    ("partition_count", "model"),
    [(1, 0), (2, 0), (3, 2), (5, 2), (6, 5), (10, 5), (11, 0), (14, 13), (22, 0), (35, 34)],
)
def test_new_partitions_are_like_the_one_that_kafkas_hash_table_yields_first(
    partition_count: int, model: int
) -> None:
    assert model_partition(partition_count) == model


def entity(**parts: str | None) -> QuotaEntity:
    """An entity from `user` and `client`; None is the default of its type."""
    names = {"client": CLIENT, "user": USER}
    return tuple(sorted((names[kind], name) for kind, name in parts.items()))


def limited(*rates: tuple[QuotaEntity, float]) -> ClientQuotasImage:
    return ClientQuotasImage(
        Map({who: Map({CONTROLLER_MUTATION_RATE: rate}) for who, rate in rates})
    )


def quota(
    quotas: MutationQuotas,
    image: ClientQuotasImage,
    now_ms: int = 0,
    *,
    user: str = "alice",
    client_id: str = "app",
    is_strict: bool = True,
) -> MutationQuota:
    found = quotas.quota_for(
        image, user=user, client_id=client_id, is_strict=is_strict, now_ms=now_ms
    )
    assert found is not None
    return found


def is_refused(asked: MutationQuota, partitions: int, now_ms: int) -> bool:
    refusal = None
    try:
        asked.record(partitions, now_ms)
    except RequestError as error:
        refusal = (error.code, error.message)
    assert refusal in {None, (THROTTLED, None)}
    return refusal is not None


ALICE = limited((entity(user="alice"), 2.0))


def test_a_full_bucket_may_be_overdrawn_once_and_then_refuses_until_it_is_refilled() -> None:
    quotas = MutationQuotas()
    first = quota(quotas, ALICE)
    first.record(20, 0)
    first.record(12, 0)
    assert first.throttle_time_ms(0) == 0
    # 22 tokens were there, 32 are gone: 10 are owed, which takes 5 seconds at 2 a second.
    assert is_refused(first, 1, 0)
    assert first.throttle_time_ms(0) == 5_000
    assert first.throttle_time_ms(1_500) == 3_500
    assert is_refused(quota(quotas, ALICE, 4_999), 1, 4_999)
    assert not is_refused(quota(quotas, ALICE, 5_001), 1, 5_001)


def test_nothing_is_saved_beyond_the_windows() -> None:
    asked = quota(MutationQuotas(window_count=3, window_seconds=2), ALICE)
    asked.record(13, 1_000_000)
    assert is_refused(asked, 1, 1_000_000)
    assert asked.throttle_time_ms(1_000_000) == 500


def test_a_permissive_quota_accepts_and_tells_to_wait() -> None:
    asked = quota(MutationQuotas(), ALICE, is_strict=False)
    asked.record(22, 0)
    assert asked.throttle_time_ms(0) == 0
    asked.record(3, 0)
    asked.record(1, 0)
    assert asked.throttle_time_ms(0) == 2_000


def test_no_client_has_a_quota_where_none_is_set() -> None:
    for image in (
        ClientQuotasImage(),
        ClientQuotasImage(Map({entity(user=None): Map({"producer_byte_rate": 1.0})})),
        ClientQuotasImage(Map({(("ip", None),): Map({CONTROLLER_MUTATION_RATE: 1.0})})),
    ):
        found = MutationQuotas().quota_for(
            image, user="alice", client_id="app", is_strict=True, now_ms=0
        )
        assert found is None


def test_who_matches_no_quota_is_not_limited() -> None:
    asked = quota(MutationQuotas(), ALICE, user="bob")
    assert not any(is_refused(asked, 10_000, 0) for _ in range(100))


PRECEDENCE = (
    entity(user="alice", client="app"),
    entity(user="alice", client=None),
    entity(user="alice"),
    entity(user=None, client="app"),
    entity(user=None, client=None),
    entity(user=None),
    entity(client="app"),
    entity(client=None),
)


@pytest.mark.parametrize("closest", range(len(PRECEDENCE)))
def test_the_closest_quota_counts(closest: int) -> None:
    there = [(who, float(10 + place)) for place, who in enumerate(PRECEDENCE) if place >= closest]
    there += [(entity(user="bob", client="app"), 1.0), (entity(client="other"), 1.0)]
    limits = MutationLimits.of(limited(*there))
    key = limits.bucket_key(user="alice", client_id="app")
    assert limits.rate(key) == 10 + closest
    kinds = dict(PRECEDENCE[closest])
    if closest < 6:
        assert key == BucketKey("alice", "app" if CLIENT in kinds else "")
    else:
        assert key == BucketKey("", "app")


def test_a_bucket_is_shared_by_all_that_its_quota_names() -> None:
    quotas = MutationQuotas()
    by_user = limited((entity(user="alice"), 1.0))
    quota(quotas, by_user, client_id="one").record(12, 0)
    assert is_refused(quota(quotas, by_user, client_id="two"), 1, 0)
    assert not is_refused(quota(quotas, by_user, user="bob"), 1, 0)
    by_client = limited((entity(client=None), 1.0))
    quota(quotas, by_client, client_id="x").record(12, 0)
    assert is_refused(quota(quotas, by_client, user="bob", client_id="x"), 1, 0)
    assert not is_refused(quota(quotas, by_client, client_id="y"), 1, 0)


def test_a_changed_rate_counts_from_then_on_and_the_debt_stays() -> None:
    quotas = MutationQuotas()
    quota(quotas, ALICE).record(42, 0)
    faster = quota(quotas, limited((entity(user="alice"), 20.0)))
    assert is_refused(faster, 1, 0)
    assert faster.throttle_time_ms(0) == 1_000


def test_a_bucket_unused_for_an_hour_is_full_again() -> None:
    slow = limited((entity(user="alice"), 0.001))
    quotas = MutationQuotas()
    quota(quotas, slow).record(1_000, 0)
    assert is_refused(quota(quotas, slow, 3_600_000), 1, 3_600_000)
    quota(quotas, slow, 3_600_001, user="bob")
    assert not is_refused(quota(quotas, slow, 3_600_001), 1, 3_600_001)


def limit_of(mutations_per_second: float) -> MutationQuota:
    """The quota of a user whose bucket holds what may be done in one second."""
    limits = limited((entity(user="alice"), mutations_per_second))
    return quota(MutationQuotas(window_count=1), limits)


def wanted_topics(*names: str, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=4, replication_factor=1)
            for name in names
        ],
        validate_only=validate_only,
    )


def test_create_topics_accepts_what_the_quota_allows_and_refuses_the_rest() -> None:
    controller = started_cluster()
    controller.mutation_quota = limit = limit_of(7.0)
    response = controller.answer(CreateTopicsResponse, wanted_topics("a", "b", "c", "d"))
    assert [(t.name, t.error_code, t.error_message) for t in response.topics] == [
        ("a", 0, None),
        ("b", 0, None),
        ("c", THROTTLED, None),
        ("d", THROTTLED, None),
    ]
    assert sorted(controller.image.topics.ids) == ["a", "b"]
    assert limit.throttle_time_ms(0) == 143


def test_a_topic_that_is_only_tried_is_paid_for() -> None:
    controller = started_cluster()
    controller.mutation_quota = limit_of(3.0)
    controller.ask(wanted_topics("a", validate_only=True))
    response = controller.answer(CreateTopicsResponse, wanted_topics("a"))
    assert [topic.error_code for topic in response.topics] == [THROTTLED]


def test_a_refused_topic_costs_nothing() -> None:
    controller = started_cluster()
    controller.mutation_quota = limit_of(3.0)
    response = controller.answer(CreateTopicsResponse, wanted_topics("bad name", "a", "b"))
    codes = [topic.error_code for topic in response.topics]
    assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE, THROTTLED]


def test_delete_topics_pays_for_every_partition() -> None:
    controller = started_cluster()
    for name in ("a", "b", "c"):
        controller.create_topic(name, partitions=4)
    controller.mutation_quota = limit_of(7.0)
    request = DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in ("a", "b", "c")]
    )
    response = controller.answer(DeleteTopicsResponse, request)
    assert sorted(topic.error_code for topic in response.responses) == [0, 0, THROTTLED]
    assert len(controller.image.topics.ids) == 1


def test_create_partitions_pays_for_what_is_added() -> None:
    controller = started_cluster()
    for name in ("a", "b"):
        controller.create_topic(name, partitions=4)
    controller.mutation_quota = limit = limit_of(1.0)
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=6, assignments=None)
            for name in ("a", "b")
        ]
    )
    response = controller.answer(CreatePartitionsResponse, request)
    codes = [(each.error_code, each.error_message) for each in response.results]
    assert codes == [(0, None), (THROTTLED, None)]
    assert limit.throttle_time_ms(0) == 1_000
