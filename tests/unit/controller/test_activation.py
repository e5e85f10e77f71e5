"""The first records of an active controller: on an empty log, after one, and after half of one."""

import pytest
from tests.support.controller_under_test import SETTINGS, ControllerUnderTest, with_static_configs

from kvorum.controller.activation_records_generator import activation_records
from kvorum.metadata.bootstrap import BootstrapMetadata, bootstrap_from_features
from kvorum.metadata.errors import ReplayError
from kvorum.metadata.features import default_feature_levels
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.wire.messages.abort_transaction_record import AbortTransactionRecord
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord


def bootstrap(version: MetadataVersion) -> BootstrapMetadata:
    return bootstrap_from_features(version, default_feature_levels(version), source="a test")


def test_an_empty_log_gets_the_bootstrap_records_in_a_transaction() -> None:
    controller = ControllerUnderTest()
    controller.activate()
    assert [message for message, _ in controller.records] == [
        BeginTransactionRecord(name="Bootstrap records"),
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="share.version", feature_level=1),
        FeatureLevelRecord(name="streams.version", feature_level=1),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        EndTransactionRecord(),
    ]
    assert controller.image.transaction is None
    assert controller.image.metadata_version is MetadataVersion.V4_3_IV0


def test_the_minimum_in_sync_comes_from_the_properties_file() -> None:
    settings = with_static_configs(min_insync_replicas="2")
    result = activation_records(MetadataImage(), bootstrap(MetadataVersion.V4_3_IV0), settings)
    (config,) = [m for m, _ in result.records if isinstance(m, ConfigRecord)]
    assert config.value == "2"
    assert not result.is_atomic


def test_levels_without_transactions_get_one_atomic_append() -> None:
    result = activation_records(MetadataImage(), bootstrap(MetadataVersion.V3_6_IV0), SETTINGS)
    assert [message for message, _ in result.records] == [
        FeatureLevelRecord(name="metadata.version", feature_level=12)
    ]
    assert result.is_atomic


def test_a_log_that_was_begun_properly_needs_nothing() -> None:
    controller = ControllerUnderTest()
    controller.activate()
    result = activation_records(controller.image, bootstrap(MetadataVersion.V4_3_IV0), SETTINGS)
    assert result.records == ()


@pytest.mark.parametrize("written", range(1, 9))
def test_a_half_written_bootstrap_is_aborted_and_written_again(written: int) -> None:
    whole = ControllerUnderTest()
    whole.activate()
    torn = ControllerUnderTest()
    torn.commit(tuple(whole.records[:written]))
    assert torn.image.published.features.metadata_version is None
    torn.activate()
    assert torn.last_records[0][0] == AbortTransactionRecord(reason="Controller failover")
    assert list(torn.last_records[1:]) == whole.records
    assert torn.image.features == whole.image.features
    assert torn.image.configs == whole.image.configs
    assert torn.image.transaction is None


def test_a_transaction_left_open_is_aborted() -> None:
    controller = ControllerUnderTest()
    controller.activate()
    controller.commit(((BeginTransactionRecord(name="later"), 0),))
    controller.activate()
    assert controller.written == [AbortTransactionRecord(reason="Controller failover")]


def test_a_transaction_at_a_level_without_them_is_fatal() -> None:
    controller = ControllerUnderTest()
    controller.activate(MetadataVersion.V3_6_IV0)
    controller.commit(((BeginTransactionRecord(name=None), 0),))
    with pytest.raises(ReplayError, match="does not support transactions"):
        activation_records(controller.image, bootstrap(MetadataVersion.V3_6_IV0), SETTINGS)
