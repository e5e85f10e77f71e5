"""The features of a cluster: activated with it, updated all or none, or refused as Kafka does."""

from dataclasses import replace

import pytest
from tests.support.controller_under_test import (
    SETTINGS,
    ControllerUnderTest,
    started_cluster,
    with_static_configs,
)

from kvorum.controller.activation_records_generator import activation_records
from kvorum.controller.apis.update_features import update_features
from kvorum.controller.quorum_description import ReplicaState
from kvorum.metadata.bootstrap import BootstrapMetadata, bootstrap_from_features
from kvorum.metadata.errors import ReplayError
from kvorum.metadata.features import kafka_feature_levels
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.voters import VoterKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.abort_transaction_record import AbortTransactionRecord
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.unregister_controller import (
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from kvorum.wire.messages.unregister_controller_record import UnregisterControllerRecord
from kvorum.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

UPGRADE, SAFE, UNSAFE = 1, 2, 3
PREFIX = "The update failed for all features since the following feature had an error: "
TO_29 = ("metadata.version", 29, UPGRADE)
NOT_TO_29 = f"{PREFIX}Invalid update version 29 for feature metadata.version. "
INVALID = ErrorCode.INVALID_REQUEST
V4_4_IV1, V4_4_IV2 = MetadataVersion.V4_4_IV1, MetadataVersion.V4_4_IV2


def bootstrap(version: MetadataVersion) -> BootstrapMetadata:
    return bootstrap_from_features(version, kafka_feature_levels(version), source="a test")


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


def wanted(*updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    """Ask for features, each with its level and the type of its upgrade."""
    return UpdateFeaturesRequest(
        feature_updates=[
            UpdateFeaturesRequest.FeatureUpdateKey(name, level, upgrade_type=upgrade_type)
            for name, level, upgrade_type in updates
        ],
        validate_only=validate_only,
    )


def update(
    controller: ControllerUnderTest, *updates: tuple[str, int, int], api_version: int = 2
) -> UpdateFeaturesResponse:
    return controller.answer(UpdateFeaturesResponse, wanted(*updates), api_version)


def refusal(controller: ControllerUnderTest, *updates: tuple[str, int, int]) -> str | None:
    """Return the message with which an update is refused, which writes nothing."""
    response = update(controller, *updates)
    assert (response.error_code, response.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])
    assert controller.last_records == ()
    return response.error_message


@pytest.mark.parametrize(
    ("name", "level", "upgrade_type", "reason"),
    [
        ("metadata.version", 33, 0, "The controller does not support the given upgrade type."),
        ("metadata.version", 33, 9, "The controller does not support the given upgrade type."),
        ("metadata.version", -1, UPGRADE, "A feature version cannot be less than 0."),
        ("metadata.version", 34, UPGRADE, "Local controller 1 only supports versions 7-33"),
        ("no.version", 1, UPGRADE, "Local controller 1 does not support this feature."),
        (
            "metadata.version",
            28,
            UPGRADE,
            (
                "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade."
            ),
        ),
        ("metadata.version", 33, SAFE, "Can't downgrade to a newer version."),
        ("kraft.version", 0, SAFE, "Can't downgrade the version of this feature."),
    ],
)
def test_refusals_are_kafkas_and_write_nothing(
    name: str, level: int, upgrade_type: int, reason: str
) -> None:
    controller = started_cluster(brokers=1, version=MetadataVersion.V4_2_IV1)
    message = f"{PREFIX}Invalid update version {level} for feature {name}. {reason}"
    assert refusal(controller, (name, level, upgrade_type)) == message


@pytest.mark.parametrize(
    ("upgrade_type", "reason"),
    [
        (
            SAFE,
            (
                "Refusing to perform the requested downgrade because it might delete metadata "
                "information."
            ),
        ),
        (UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
def test_downgrades_that_would_lose_something(upgrade_type: int, reason: str) -> None:
    message = f"{PREFIX}Unsupported metadata.version downgrade from 30 to 29. {reason}"
    assert refusal(started_cluster(brokers=1), ("metadata.version", 29, upgrade_type)) == message


def test_up_and_safely_down_again() -> None:
    controller = started_cluster(brokers=1, version=MetadataVersion.V4_2_IV0)
    assert update(controller, TO_29).error_code == 0
    assert controller.written == [FeatureLevelRecord("metadata.version", 29)]
    assert update(controller, ("metadata.version", 28, SAFE)).error_code == 0
    assert controller.image.metadata_version == 28


def test_one_refusal_keeps_everything_back() -> None:
    controller = started_cluster(brokers=1, version=MetadataVersion.V4_2_IV0)
    assert refusal(controller, TO_29, ("group.version", 5, UPGRADE))


def test_dependencies_may_be_met_by_the_same_request() -> None:
    controller = started_cluster(brokers=1, version=MetadataVersion.V4_0_IV0)
    eligible_leaders = ("eligible.leader.replicas.version", 1, UPGRADE)
    assert refusal(controller, eligible_leaders) == (
        f"{PREFIX}Invalid update version 1 for feature eligible.leader.replicas.version. "
        "eligible.leader.replicas.version could not be set to 1 because it depends on "
        "metadata.version level 23"
    )
    assert update(controller, ("metadata.version", 23, UPGRADE), eligible_leaders).error_code == 0
    assert controller.image.features.is_elr_enabled


def test_validate_only() -> None:
    controller = started_cluster(brokers=1, version=MetadataVersion.V4_2_IV0)
    request = wanted(TO_29, validate_only=True)
    assert controller.answer(UpdateFeaturesResponse, request).error_code == 0
    assert controller.last_records == ()


@pytest.mark.parametrize("api_version", [0, 1, 2])
def test_old_versions_list_what_they_changed(api_version: int) -> None:
    controller = started_cluster(brokers=1, version=MetadataVersion.V4_2_IV0)
    raised = TO_29
    response = update(controller, raised, api_version=max(api_version, 1))
    expected = [UpdateFeaturesResponse.UpdatableFeatureResult("metadata.version", 0, "NONE")]
    assert response.error_message is None
    if api_version == 2:
        response = update(controller, raised, api_version=2)
        expected = []
    assert response.results == expected


def test_turning_elr_on_pins_the_minimum_in_sync() -> None:
    controller = started_cluster(brokers=2, version=MetadataVersion.V4_0_IV3)
    controller.commit(
        (
            (ConfigRecord(4, "1", "min.insync.replicas", "2"), 0),
            (ConfigRecord(4, "2", "log.cleaner.threads", "2"), 0),
        )
    )
    update(controller, ("eligible.leader.replicas.version", 1, UPGRADE))
    assert controller.written == [
        ConfigRecord(4, "", "min.insync.replicas", "1"),
        ConfigRecord(4, "1", "min.insync.replicas", None),
        FeatureLevelRecord("eligible.leader.replicas.version", 1),
    ]


def test_a_broker_that_is_too_old_keeps_a_level_back() -> None:
    controller = started_cluster(brokers=0, version=MetadataVersion.V4_2_IV0)
    request = controller.registration(5)
    request.features[0].max_supported_version = 28
    controller.ask(request)
    assert refusal(controller, TO_29) == f"{NOT_TO_29}Broker 5 only supports versions 7-28"


def controller_registration(
    node_id: int, metadata_version_max: int
) -> ControllerRegistrationRequest:
    levels = kafka_feature_levels(MetadataVersion.V4_3_IV0)
    return ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=bytes([node_id] * 16),
        features=[
            ControllerRegistrationRequest.Feature("metadata.version", 7, metadata_version_max),
            *(ControllerRegistrationRequest.Feature(name, 0, 2) for name in levels),
        ],
    )


def test_other_controllers_have_a_say() -> None:
    controller = started_cluster(brokers=0, version=MetadataVersion.V4_2_IV0)
    controller.settings = replace(controller.settings, quorum_voter_ids=(1, 2))
    assert refusal(controller, TO_29) == (
        f"{NOT_TO_29}controller 2 has not registered, and may not support this feature"
    )
    assert controller.ask(controller_registration(2, 28)) == ControllerRegistrationResponse()
    assert refusal(controller, TO_29) == f"{NOT_TO_29}Controller 2 only supports versions 7-28"
    controller.ask(controller_registration(2, 30))
    assert update(controller, TO_29).error_code == 0


def test_a_controller_has_a_say_until_it_is_unregistered_whether_it_is_a_voter_or_not() -> None:
    """Removing a voter during an upgrade of a feature does not change what the upgrade needs."""
    controller = started_cluster(brokers=0, version=MetadataVersion.V4_2_IV0)
    assert controller.settings.quorum_voter_ids == (), "the voters are in the log"
    controller.ask(controller_registration(2, 28))
    assert refusal(controller, TO_29) == f"{NOT_TO_29}Controller 2 only supports versions 7-28"


def test_controllers_cannot_register_at_old_levels() -> None:
    controller = started_cluster(brokers=0, version=MetadataVersion.V3_6_IV2)
    response = controller.answer(ControllerRegistrationResponse, controller_registration(2, 30))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert controller.last_records == ()


def test_the_level_of_kraft_version_may_be_confirmed() -> None:
    controller = started_cluster(brokers=1)
    assert update(controller, ("kraft.version", 1, UPGRADE)).error_code == 0
    assert controller.last_records == ((NoOpRecord(), 0),)


@pytest.mark.parametrize(
    ("validate_only", "kraft_version", "records"),
    [(False, 1, ((NoOpRecord(), 0),)), (True, None, ())],
)
def test_raising_kraft_version_is_left_to_the_quorum_and_waited_for_unless_it_is_only_tried(
    validate_only: bool, kraft_version: int | None, records: tuple[RecordAndVersion, ...]
) -> None:
    controller = started_cluster(brokers=1)
    controller.kraft_version = 0
    request = wanted(("kraft.version", 1, UPGRADE), validate_only=validate_only)
    result = update_features(controller.image, request, controller.context(2))
    assert result.response.error_code == 0
    assert (result.kraft_version, result.records) == (kraft_version, records)


def test_the_quorums_objection_to_a_kraft_version_is_reported() -> None:
    controller = started_cluster(brokers=1)
    controller.kraft_version = 0
    controller.kraft_upgrade_problem = "Invalid upgrade, because"
    request = wanted(("kraft.version", 1, UPGRADE))
    result = update_features(controller.image, request, controller.context(2))
    assert result.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert result.response.error_message == f"{PREFIX}Invalid upgrade, because"
    assert (result.kraft_version, result.records) == (None, ())


@pytest.mark.parametrize("upgrade_type", [SAFE, UNSAFE])
def test_kraft_version_never_goes_back(upgrade_type: int) -> None:
    controller = started_cluster(brokers=1)
    request = wanted(("kraft.version", 0, upgrade_type))
    result = update_features(controller.image, request, controller.context(2))
    assert result.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert result.response.error_message == (
        f"{PREFIX}Invalid update version 0 for feature kraft.version. "
        "Can't downgrade the version of this feature."
    )
    assert (result.kraft_version, result.records) == (None, ())


def unregister(controller: ControllerUnderTest, controller_id: int) -> tuple[int, str | None]:
    response = controller.answer(
        UnregisterControllerResponse, UnregisterControllerRequest(controller_id)
    )
    return response.error_code, response.error_message


def test_an_unregistered_controller_holds_up_no_change_of_features() -> None:
    controller = started_cluster(brokers=0, version=MetadataVersion.V4_4_IV2)
    registration = controller_registration(2, 33)
    for one in registration.features:
        if one.name == "transaction.version":
            one.min_supported_version = 2
    controller.ask(registration)
    change = ("transaction.version", 1, SAFE)
    assert "Controller 2 only supports versions 2" in str(refusal(controller, change))
    assert unregister(controller, 2) == (ErrorCode.NONE, "")
    assert controller.last_records == ((UnregisterControllerRecord(2), 0),)
    assert update(controller, change).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("controller_id", "version", "code", "message"),
    [
        (1, V4_4_IV2, INVALID, "Controller cannot unregister itself while it is active."),
        (
            2,
            V4_4_IV1,
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller unregistration.",
        ),
        (
            3,
            V4_4_IV2,
            ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            "Controller ID 3 is not currently registered.",
        ),
        (
            4,
            V4_4_IV2,
            INVALID,
            "Controller 4 is a voter; it has to be removed from the voters first.",
        ),
    ],
)
def test_who_is_needed_is_not_unregistered(
    controller_id: int, version: MetadataVersion, code: ErrorCode, message: str
) -> None:
    controller = started_cluster(brokers=0, version=version)
    for node_id in (1, 2, 4):
        controller.ask(controller_registration(node_id, 33))
    voters = tuple(ReplicaState(VoterKey(one, bytes([one] * 16)), 5, 0.0) for one in (1, 4))
    controller.quorum = replace(controller.quorum, voters=voters)
    assert unregister(controller, controller_id) == (code, message)
    assert controller.last_records == ()
