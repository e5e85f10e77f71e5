"""The configuration of share groups as leaders apply it."""

import pytest
from immutables import Map

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.share_group_config import (
    ShareFetchSettings,
    ShareGroupConfig,
    share_group_config,
)
from kvorum.broker.share_group_config_provider import ShareGroupConfigProvider
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.features import SHARE_VERSION_FEATURE, FeaturesImage
from kvorum.metadata.image import MetadataImage

SETTINGS = ShareFetchSettings(record_lock_duration_ms=9)


def config(**own: str) -> ShareGroupConfig:
    """Return the configuration of a group with values of its own, `_` for a dot in their keys."""
    return share_group_config(image(2, **own), "orders", SETTINGS)


def image(share_version: int, **own: str) -> MetadataImage:
    """Return the metadata of a cluster with a level of share.version and values of a group."""
    values = Map({name.replace("_", "."): value for name, value in own.items()})
    return MetadataImage(
        configs=ConfigsImage(Map({(int(ResourceType.GROUP), "orders"): values})),
        features=FeaturesImage(levels=Map({SHARE_VERSION_FEATURE: share_version})),
    )


def test_a_group_without_values_of_its_own_has_the_brokers_and_kafkas() -> None:
    assert config() == ShareGroupConfig(
        SharePartitionSettings(
            delivery_count_limit=5,
            record_lock_duration_ms=9,
            record_locks_max=2_000,
            is_renew_acknowledge_enabled=True,
            is_dead_letter_queue_enabled=False,
        ),
        auto_offset_reset="latest",
        isolation=IsolationLevel.READ_UNCOMMITTED,
    )


@pytest.mark.parametrize(
    ("own", "applied"), [("1000", 15_000), ("20000", 20_000), ("99999", 60_000)]
)
def test_a_groups_own_lock_duration_is_brought_within_the_brokers_bounds(
    own: str, applied: int
) -> None:
    found = config(share_record_lock_duration_ms=own)
    assert found.partition.record_lock_duration_ms == applied


def test_a_group_has_its_own_words() -> None:
    own = config(
        share_auto_offset_reset="earliest",
        share_isolation_level="read_committed",
        share_renew_acknowledge_enable="false",
        share_delivery_count_limit="7",
        share_partition_max_record_locks="300",
    )
    assert own.auto_offset_reset == "earliest"
    assert own.isolation is IsolationLevel.READ_COMMITTED
    assert not own.partition.is_renew_acknowledge_enabled
    assert (own.partition.delivery_count_limit, own.partition.record_locks_max) == (7, 300)


@pytest.mark.parametrize(("share_version", "is_enabled"), [(1, False), (2, True)])
def test_a_group_has_the_dead_letter_queue_that_it_names_from_share_version_2_on(
    share_version: int, is_enabled: bool
) -> None:
    named = image(share_version, errors_deadletterqueue_topic_name="dlq.orders")
    found = share_group_config(named, "orders", SETTINGS)
    assert found.partition.is_dead_letter_queue_enabled is is_enabled


def test_a_change_of_a_groups_values_is_in_force_with_its_image() -> None:
    published = image(2)
    provider = ShareGroupConfigProvider(SETTINGS, lambda: published)
    assert provider.config("orders").auto_offset_reset == "latest"
    published = image(2, share_auto_offset_reset="earliest")
    assert provider.config("orders").auto_offset_reset == "earliest"
