"""BrokerRegistration (62): a broker registers an incarnation and gets its epoch."""

from collections.abc import Iterable, Mapping
from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult, Pieces, gather
from kvorum.controller.broker_changes import end_incarnation
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata import directory_ids
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, refused_by_code
from kvorum.metadata.cluster_image import (
    BrokerRegistration,
    ClusterImage,
    Endpoint,
    EndpointFields,
    endpoint_of,
    feature_ranges,
    write_endpoints,
    write_features,
)
from kvorum.metadata.features import DISABLED, KRAFT_VERSION_FEATURE, VersionRange
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.uuid_text import uuid_to_text

SECURITY_PROTOCOLS: Final = frozenset(range(4))
"""PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL."""

BLANKS: Final = "".join(map(chr, range(ord(" ") + 1)))
"""The characters that Java trims off a string."""

FIRST_VERSION_WITH_PREVIOUS_EPOCH: Final = 3
NEVER_REGISTERED: Final = -2
"""The previous epoch that proves a clean shutdown where no registration exists."""


def register_broker(
    image: MetadataImage, request: BrokerRegistrationRequest, context: ControllerRequestContext
) -> Pieces[ControllerResult[BrokerRegistrationResponse]]:
    """Register the broker, or refuse a broker that may not join.

    This is done in pieces: an earlier incarnation may leave many partitions to change.
    The epoch of a new incarnation is the offset its registration gets if it is the first record
    of the result; a broker that registers the same incarnation again keeps its epoch.
    """
    existing = image.cluster.brokers.get(request.broker_id)
    _check_identity(request, existing, context)
    if image.metadata_version.supports_directory_assignment:
        _check_directories(image.cluster, request)
    listeners = checked_listeners(request.listeners)
    _check_features(image, request, context)
    is_new = existing is None or existing.incarnation_id != request.incarnation_id
    records: list[RecordAndVersion] = []
    if is_new:
        leaving = end_incarnation(
            ClusterRules(image, context.settings),
            request.broker_id,
            is_clean=_was_shutdown_clean(request, existing, context),
        )
        yield from gather(records, leaving)
    # The state of heartbeats begins again, even for the same incarnation.
    context.sessions.forget(request.broker_id)
    record = _registration_record(
        image, request, listeners=listeners, existing=None if is_new else existing
    )
    if is_new:
        record.broker_epoch = context.next_offset
    records.append((record, image.metadata_version.register_broker_record_version))
    response = BrokerRegistrationResponse(broker_epoch=record.broker_epoch)
    return ControllerResult(response, tuple(records), is_atomic=False)


def checked_listeners(listeners: Iterable[EndpointFields]) -> list[Endpoint]:
    """Return the listeners to record: of several with one name the last, in the first's place.

    Raise `RequestError` for a listener without a usable host or port, or with an unknown security
    protocol. Kafka's controller fails on these with UNKNOWN_SERVER_ERROR.
    """
    by_name: dict[str, Endpoint] = {}
    for listener in listeners:
        if listener.security_protocol not in SECURITY_PROTOCOLS:
            raise _invalid(
                f"Unknown security protocol {listener.security_protocol} "
                f"in listener {listener.name}"
            )
        if not listener.host.strip(BLANKS) or listener.port == 0:
            raise _invalid(
                f"Listener {listener.name} has no address: {listener.host!r}, port {listener.port}"
            )
        by_name[listener.name] = endpoint_of(listener)
    return list(by_name.values())


def _check_identity(
    request: BrokerRegistrationRequest,
    existing: BrokerRegistration | None,
    context: ControllerRequestContext,
) -> None:
    cluster_id = context.settings.cluster_id
    if request.cluster_id != cluster_id:
        raise RequestError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {cluster_id}, but got cluster ID {request.cluster_id}",
        )
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and context.sessions.is_valid(existing.id, existing.epoch, context.now_ms)
    ):
        raise RequestError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently "
            "restarted this should self-resolve once the heartbeat manager expires the "
            "broker's session.",
        )
    if request.is_migrating_zk_broker:
        raise RequestError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        )


def _check_directories(cluster: ClusterImage, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    if not directories:
        raise _invalid("No directories specified in request")
    if any(directory_ids.is_reserved(directory) for directory in directories):
        raise _invalid("Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise _invalid("Duplicate directory ID in request")
    for directory in directories:
        owner = cluster.directory_owner(directory)
        if owner is not None and owner != request.broker_id:
            raise _invalid(
                f"Broker {owner} is already registered with directory {uuid_to_text(directory)}"
            )


def _check_features(
    image: MetadataImage, request: BrokerRegistrationRequest, context: ControllerRequestContext
) -> None:
    """Check that the broker supports every finalized level and metadata.version."""
    finalized = image.features.all_levels() | {KRAFT_VERSION_FEATURE: context.kraft_version}
    supported = dict(feature_ranges(request.features))
    for name, supported_range in supported.items():
        _check_feature(name, supported_range, finalized)
    if METADATA_VERSION_FEATURE not in supported:
        raise _invalid(f"Request features do not contain '{METADATA_VERSION_FEATURE}'")
    for name in finalized.keys() - supported.keys():
        _check_feature(name, DISABLED, finalized)


def _check_feature(name: str, supported: VersionRange, finalized: Mapping[str, int]) -> None:
    level = finalized.get(name, 0)
    if level not in supported:
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version {level} "
            f"of {name}. The broker wants a version between {supported.min} and {supported.max}, "
            "inclusive.",
        )


def _was_shutdown_clean(
    request: BrokerRegistrationRequest,
    existing: BrokerRegistration | None,
    context: ControllerRequestContext,
) -> bool:
    """Return whether the broker sent its previous epoch, which proves a clean shutdown."""
    return (
        context.api_version >= FIRST_VERSION_WITH_PREVIOUS_EPOCH
        and request.previous_broker_epoch == (existing.epoch if existing else NEVER_REGISTERED)
    )


def _registration_record(
    image: MetadataImage,
    request: BrokerRegistrationRequest,
    *,
    listeners: Iterable[Endpoint],
    existing: BrokerRegistration | None,
) -> RegisterBrokerRecord:
    """Return the record; `existing` is the registration of the same incarnation, if any."""
    supports_directories = image.metadata_version.supports_directory_assignment
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=existing.epoch if existing else -1,
        end_points=write_endpoints(listeners, RegisterBrokerRecord.BrokerEndpoint),
        features=write_features(
            feature_ranges(request.features), RegisterBrokerRecord.BrokerFeature
        ),
        rack=request.rack,
        fenced=existing.is_fenced if existing else True,
        in_controlled_shutdown=existing.is_in_controlled_shutdown if existing else False,
        log_dirs=list(request.log_dirs) if supports_directories else [],
    )


def _invalid(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REGISTRATION, message)


API: Final = ControllerApi(
    request=BrokerRegistrationRequest,
    permission=AclOperation.CLUSTER_ACTION,
    decide=register_broker,
    refuse=refused_by_code(BrokerRegistrationResponse),
)
