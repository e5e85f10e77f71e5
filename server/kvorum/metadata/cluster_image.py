"""Registered brokers and controllers, folded from their registration records."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from immutables import Map

from kvorum.metadata import directory_ids
from kvorum.metadata.errors import ReplayError
from kvorum.metadata.features import VersionRange
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.fence_broker_record import FenceBrokerRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.unfence_broker_record import UnfenceBrokerRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from kvorum.wire.messages.unregister_controller_record import UnregisterControllerRecord

Written = TypeVar("Written")

_FENCING_CHANGES = {-1: False, 0: None, 1: True}
_SHUTDOWN_CHANGES = {0: None, 1: True}
"""The codes of a change record's fields; None leaves the state as it is."""


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """The address of one listener of a node; `security_protocol` is Kafka's number."""

    listener: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker as its latest incarnation registered it, with all later changes.

    `epoch` is the offset at which the incarnation first registered. `listeners`,
    `supported_features` and `directories` are sorted. `cordoned_directories` is None until the
    broker has reported them. `registered_at_offset` is the offset of the latest registration
    record; for a registration from a snapshot, it is the last offset that the snapshot contains.
    """

    id: int
    epoch: int
    incarnation_id: bytes
    listeners: tuple[Endpoint, ...]
    supported_features: Map[str, VersionRange]
    rack: str | None
    is_fenced: bool
    is_in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    directories: tuple[bytes, ...]
    cordoned_directories: tuple[bytes, ...] | None
    registered_at_offset: int = field(default=-1, compare=False)

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead partitions and be in an ISR."""
        return not (self.is_fenced or self.is_in_controlled_shutdown)

    @property
    def has_uncordoned_directory(self) -> bool:
        """Whether a directory accepts new replicas, as far as is known."""
        if not self.directories or self.cordoned_directories is None:
            return True
        return bool(set(self.directories) - set(self.cordoned_directories))

    def has_online_directory(self, directory_id: bytes) -> bool:
        """Return whether a replica in `directory_id` of this broker is usable."""
        return directory_ids.is_online(directory_id, self.directories)

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of the listener called `listener`, None without one."""
        return find_endpoint(self.listeners, listener)


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """A controller as it registered itself (KIP-919)."""

    id: int
    incarnation_id: bytes
    is_zk_migration_ready: bool
    listeners: tuple[Endpoint, ...]
    supported_features: Map[str, VersionRange]

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of the listener called `listener`, None without one."""
        return find_endpoint(self.listeners, listener)


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """Every registered broker and controller by id."""

    brokers: Map[int, BrokerRegistration] = field(default_factory=Map[int, BrokerRegistration])
    controllers: Map[int, ControllerRegistration] = field(
        default_factory=Map[int, ControllerRegistration]
    )

    def is_broker_active(self, broker_id: int) -> bool:
        """Return whether the broker is registered, unfenced and not shutting down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def unfenced_brokers(self) -> list[BrokerRegistration]:
        """Return the brokers that are not fenced, in order of id."""
        return [broker for broker in self.sorted_brokers() if not broker.is_fenced]

    def sorted_brokers(self) -> list[BrokerRegistration]:
        """Return every registered broker in order of id."""
        return [self.brokers[broker_id] for broker_id in sorted(self.brokers)]

    def directory_owner(self, directory_id: bytes) -> int | None:
        """Return the id of the broker that registered the log directory, None where none did."""
        for broker in self.brokers.values():
            if directory_id in broker.directories:
                return broker.id
        return None


def find_endpoint(listeners: Iterable[Endpoint], listener: str) -> Endpoint | None:
    """Return the endpoint of the listener called `listener`, None without one."""
    return next((endpoint for endpoint in listeners if endpoint.listener == listener), None)


class EndpointFields(Protocol):
    """An endpoint of a registration, in a request or a record."""

    name: str
    host: str
    port: int
    security_protocol: int


class FeatureFields(Protocol):
    """A feature of a registration, in a request or a record."""

    name: str
    min_supported_version: int
    max_supported_version: int


def endpoint_of(fields: EndpointFields) -> Endpoint:
    """Return an endpoint as a request or a record writes it."""
    return Endpoint(fields.name, fields.host, fields.port, fields.security_protocol)


def feature_ranges(features: Iterable[FeatureFields]) -> list[tuple[str, VersionRange]]:
    """Return name and supported range of each feature, in the order of a request or a record."""
    return [
        (each.name, VersionRange(each.min_supported_version, each.max_supported_version))
        for each in features
    ]


def write_endpoints(
    endpoints: Iterable[Endpoint], new: Callable[[str, str, int, int], Written]
) -> list[Written]:
    """Return the endpoints as instances of `new`, the class of a request or a record."""
    return [new(each.listener, each.host, each.port, each.security_protocol) for each in endpoints]


def write_features(
    ranges: Iterable[tuple[str, VersionRange]], new: Callable[[str, int, int], Written]
) -> list[Written]:
    """Return the features as instances of `new`, the class of a request or a record."""
    return [new(name, range_.min, range_.max) for name, range_ in ranges]


def _sorted_endpoints(end_points: Iterable[EndpointFields]) -> tuple[Endpoint, ...]:
    """Return the endpoints of a registration, sorted, one per listener name."""
    return tuple(sorted({point.name: endpoint_of(point) for point in end_points}.values()))


def replay_register_broker(
    image: ClusterImage, record: RegisterBrokerRecord, offset: int
) -> ClusterImage:
    """Return `image` with a broker registered, in place of any earlier registration."""
    cordoned = record.cordoned_log_dirs
    broker = BrokerRegistration(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        listeners=_sorted_endpoints(record.end_points),
        supported_features=Map(feature_ranges(record.features)),
        rack=record.rack,
        is_fenced=record.fenced,
        is_in_controlled_shutdown=record.in_controlled_shutdown,
        is_migrating_zk_broker=record.is_migrating_zk_broker,
        directories=tuple(sorted(record.log_dirs, key=directory_ids.in_kafka_order)),
        cordoned_directories=None if cordoned is None else tuple(cordoned),
        registered_at_offset=offset,
    )
    return replace(image, brokers=image.brokers.set(broker.id, broker))


def replay_unregister_broker(image: ClusterImage, record: UnregisterBrokerRecord) -> ClusterImage:
    """Return `image` without one broker."""
    broker = _registered(image, record.broker_id, record.broker_epoch, action="unregister")
    return replace(image, brokers=image.brokers.delete(broker.id))


def replay_fence_broker(image: ClusterImage, record: FenceBrokerRecord) -> ClusterImage:
    """Return `image` with one broker fenced."""
    broker = _registered(image, record.id, record.epoch, action="fence")
    return replace(image, brokers=image.brokers.set(broker.id, replace(broker, is_fenced=True)))


def replay_unfence_broker(image: ClusterImage, record: UnfenceBrokerRecord) -> ClusterImage:
    """Return `image` with one broker unfenced."""
    broker = _registered(image, record.id, record.epoch, action="unfence")
    return replace(image, brokers=image.brokers.set(broker.id, replace(broker, is_fenced=False)))


def replay_broker_registration_change(
    image: ClusterImage, record: BrokerRegistrationChangeRecord
) -> ClusterImage:
    """Return `image` with those fields of one broker changed that the record sets."""
    broker = _registered(image, record.broker_id, record.broker_epoch, action="change")
    if record.fenced not in _FENCING_CHANGES:
        raise ReplayError(f"unknown value {record.fenced} for Fenced of broker {broker.id}")
    if record.in_controlled_shutdown not in _SHUTDOWN_CHANGES:
        raise ReplayError(
            f"unknown value {record.in_controlled_shutdown} for InControlledShutdown "
            f"of broker {broker.id}"
        )
    fenced = _FENCING_CHANGES[record.fenced]
    shutting_down = _SHUTDOWN_CHANGES[record.in_controlled_shutdown]
    cordoned = record.cordoned_log_dirs
    changed = replace(
        broker,
        is_fenced=broker.is_fenced if fenced is None else fenced,
        is_in_controlled_shutdown=(
            broker.is_in_controlled_shutdown if shutting_down is None else shutting_down
        ),
        directories=tuple(sorted(record.log_dirs, key=directory_ids.in_kafka_order))
        if record.log_dirs
        else broker.directories,
        cordoned_directories=(broker.cordoned_directories if cordoned is None else tuple(cordoned)),
    )
    return replace(image, brokers=image.brokers.set(broker.id, changed))


def replay_register_controller(
    image: ClusterImage, record: RegisterControllerRecord
) -> ClusterImage:
    """Return `image` with a controller registered, in place of any earlier registration."""
    controller = ControllerRegistration(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        is_zk_migration_ready=record.zk_migration_ready,
        listeners=_sorted_endpoints(record.end_points),
        supported_features=Map(feature_ranges(record.features)),
    )
    return replace(image, controllers=image.controllers.set(controller.id, controller))


def replay_unregister_controller(
    image: ClusterImage, record: UnregisterControllerRecord
) -> ClusterImage:
    """Return `image` without one controller."""
    if record.controller_id not in image.controllers:
        raise ReplayError(
            f"tried to unregister controller {record.controller_id}, which is not registered"
        )
    return replace(image, controllers=image.controllers.delete(record.controller_id))


def _registered(
    image: ClusterImage, broker_id: int, epoch: int, *, action: str
) -> BrokerRegistration:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ReplayError(f"tried to {action} broker {broker_id}, which is not registered")
    if broker.epoch != epoch:
        raise ReplayError(
            f"tried to {action} broker {broker_id} of epoch {epoch}, "
            f"but its current epoch is {broker.epoch}"
        )
    return broker
