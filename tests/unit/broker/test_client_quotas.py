"""The quota that counts for a client, what waits, and what follows a change of the metadata."""

import pytest
from immutables import Map

from kvorum.broker.quota.client_quota_manager import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    THROTTLE_TIME_MS_MAX,
    UNLIMITED,
    ClientQuotaManager,
    ClientRequestQuotaManager,
    QuotaClient,
    QuotaManagers,
)
from kvorum.broker.quota.sampled_stat import MetricConfig
from kvorum.metadata.client_quotas_image import CLIENT_ID, IP, USER, ClientQuotasImage, QuotaEntity

CONFIG = MetricConfig(sample_count=11, window_ms=1000.0)
ALICE = QuotaClient("alice", "app")
# From the weakest to the strongest, as in Kafka's documentation.
BY_STRENGTH: tuple[QuotaEntity, ...] = (
    ((CLIENT_ID, None),),
    ((CLIENT_ID, "app"),),
    ((USER, None),),
    ((CLIENT_ID, None), (USER, None)),
    ((CLIENT_ID, "app"), (USER, None)),
    ((USER, "alice"),),
    ((CLIENT_ID, None), (USER, "alice")),
    ((CLIENT_ID, "app"), (USER, "alice")),
)


def image(key: str, bounds: dict[QuotaEntity, float]) -> ClientQuotasImage:
    return ClientQuotasImage(Map({entity: Map({key: bound}) for entity, bound in bounds.items()}))


def manager(bounds: dict[QuotaEntity, float]) -> ClientQuotaManager:
    made = ClientQuotaManager(PRODUCER_BYTE_RATE, CONFIG)
    made.update_quotas(image(PRODUCER_BYTE_RATE, bounds))
    return made


@pytest.mark.parametrize("count", range(1, len(BY_STRENGTH) + 1))
def test_the_most_specific_quota_counts(count: int) -> None:
    bounds = {entity: float(number) for number, entity in enumerate(BY_STRENGTH[:count], 1)}
    assert manager(bounds).max_value_in_quota_window(ALICE) == count * 10


def test_clients_of_a_user_share_the_quota_of_the_user() -> None:
    quota = manager({((USER, "alice"),): 100.0})
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 1000.0, 0.0) == 0
    other = QuotaClient("alice", "other")
    assert quota.maybe_record_and_get_throttle_time_ms(other, 100.0, 0.0) == 1000
    assert quota.maybe_record_and_get_throttle_time_ms(QuotaClient("bob", "app"), 1e9, 0.0) == 0


def test_the_wait_brings_the_rate_down_to_the_quota() -> None:
    quota = manager({((CLIENT_ID, "app"),): 100.0})
    # 1,500 in the ten seconds that count are half too much.
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 1500.0, 0.0) == 5000
    # Windows before the first request count, so that only time after all of them brings it down.
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 0.0, 5000.0) == 5000
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 0.0, 15_000.0) == 0


def test_no_client_waits_for_longer_than_a_response_can_say() -> None:
    quota = manager({((CLIENT_ID, "app"),): 1.0})
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 1e12, 0.0) == THROTTLE_TIME_MS_MAX


def test_what_is_taken_back_does_not_count() -> None:
    quota = manager({((CLIENT_ID, "app"),): 100.0})
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 5000.0, 0.0) > 0
    quota.unrecord_quota_sensor(ALICE, 5000.0, 0.0)
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 1000.0, 1.0) == 0


def test_a_request_waits_no_longer_than_a_window() -> None:
    quota = ClientRequestQuotaManager(REQUEST_PERCENTAGE, CONFIG)
    quota.update_quotas(image(REQUEST_PERCENTAGE, {((USER, None),): 1.0}))
    # 100 ms of ten seconds are one percent.
    assert quota.maybe_record_request_time(ALICE, 100.0, 0.0) == 0
    assert quota.maybe_record_request_time(ALICE, 1.0, 0.0) == 100
    assert quota.maybe_record_request_time(ALICE, 5000.0, 0.0) == 1000


def test_quotas_follow_the_metadata_and_what_was_used_is_kept() -> None:
    managers = QuotaManagers(CONFIG)
    assert managers.produce.maybe_record_and_get_throttle_time_ms(ALICE, 1e9, 0.0) == 0
    entity: QuotaEntity = ((CLIENT_ID, "app"),)
    managers.update(image(PRODUCER_BYTE_RATE, {entity: 100.0}))
    # Bytes that were sent without a quota are not held against the client.
    assert managers.produce.maybe_record_and_get_throttle_time_ms(ALICE, 900.0, 0.0) == 0
    assert not managers.fetch.quotas_enabled
    managers.update(image(PRODUCER_BYTE_RATE, {entity: 45.0}))
    assert managers.produce.maybe_record_and_get_throttle_time_ms(ALICE, 0.0, 0.0) == 10_000
    managers.update(image(CONSUMER_BYTE_RATE, {entity: 45.0}))
    assert managers.produce.maybe_record_and_get_throttle_time_ms(ALICE, 1e9, 0.0) == 0
    assert managers.fetch.max_value_in_quota_window(ALICE) == 450
    managers.update(image(REQUEST_PERCENTAGE, {entity: 50.0}))
    assert managers.request.quotas_enabled


def test_quotas_of_addresses_are_not_those_of_clients() -> None:
    quota = manager({((IP, None),): 1.0})
    assert not quota.quotas_enabled
    assert quota.max_value_in_quota_window(ALICE) == UNLIMITED
