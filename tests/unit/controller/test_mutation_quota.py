"""The controller mutation quota: whose bucket, how full, and what is refused meanwhile."""

import pytest
from immutables import Map
from tests.support.controller_under_test import started_cluster

from kvorum.controller.controller_mutation_quota import (
    CONTROLLER_MUTATION_RATE,
    BucketKey,
    MutationLimits,
    MutationQuota,
    MutationQuotas,
)
from kvorum.metadata.client_quotas_image import ClientQuotasImage, QuotaEntity
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
CLIENT, USER = "client-id", "user"


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
