"""Registered brokers and controllers, folded from their registration records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from immutables import Map

from kvorum.metadata import directory_ids
from kvorum.metadata.errors import ReplayError
from kvorum.metadata.features import VersionRange
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """Where a listener of a node is reached; `security_protocol` is Kafka's number."""

    listener: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker as its latest incarnation registered it and as it was changed since.

    `epoch` is the offset at which the incarnation first registered. `listeners`,
    `supported_features` and `directories` are sorted. `cordoned_directories` is None until the
    broker told them. `registered_at_offset` is the offset of the latest registration record, and
    for one that came out of a snapshot the last offset the snapshot contains.
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
        """Whether new replicas have a directory to go to, as far as is known."""
        if not self.directories or self.cordoned_directories is None:
            return True
        return bool(set(self.directories) - set(self.cordoned_directories))

    def has_online_directory(self, directory_id: bytes) -> bool:
        """Tell whether a replica in `directory_id` of this broker is usable."""
        return directory_ids.is_online(directory_id, self.directories)

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return where the listener called `listener` is reached, None where it is not."""
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
        """Return where the listener called `listener` is reached, None where it is not."""
        return find_endpoint(self.listeners, listener)


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """Every registered broker and controller by id."""

    brokers: Map[int, BrokerRegistration] = field(default_factory=Map[int, BrokerRegistration])
    controllers: Map[int, ControllerRegistration] = field(
        default_factory=Map[int, ControllerRegistration]
    )

    def is_broker_active(self, broker_id: int) -> bool:
        """Tell whether the broker is registered, unfenced and not shutting down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def unfenced_brokers(self) -> list[BrokerRegistration]:
        """Return the brokers that clients may talk to, in order of id."""
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
    """Return the endpoint of the listener called `listener`, None where there is none."""
    return next((endpoint for endpoint in listeners if endpoint.listener == listener), None)


class _EndpointFields(Protocol):
    name: str
    host: str
    port: int
    security_protocol: int


class _FeatureFields(Protocol):
    name: str
    min_supported_version: int
    max_supported_version: int


def endpoints_from_record(end_points: Sequence[_EndpointFields]) -> tuple[Endpoint, ...]:
    """Return the endpoints of a registration, one a listener name, sorted."""
    by_name = {
        point.name: Endpoint(point.name, point.host, point.port, point.security_protocol)
        for point in end_points
    }
    return tuple(sorted(by_name.values()))


def features_from_record(features: Sequence[_FeatureFields]) -> Map[str, VersionRange]:
    """Return the supported range of each feature of a registration."""
    return Map(
        {
            feature.name: VersionRange(feature.min_supported_version, feature.max_supported_version)
            for feature in features
        }
    )


def replay_register_broker(
    image: ClusterImage, record: RegisterBrokerRecord, offset: int
) -> ClusterImage:
    """Return `image` with a broker added, or registered anew."""
    cordoned = record.cordoned_log_dirs
    broker = BrokerRegistration(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        listeners=endpoints_from_record(record.end_points),
        supported_features=features_from_record(record.features),
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


def replay_fencing(image: ClusterImage, broker_id: int, epoch: int, *, fence: bool) -> ClusterImage:
    """Return `image` with one broker fenced or unfenced, as the oldest records say it."""
    broker = _registered(image, broker_id, epoch, action="fence" if fence else "unfence")
    return replace(image, brokers=image.brokers.set(broker_id, replace(broker, is_fenced=fence)))


_FENCING_CHANGES = {-1: False, 0: None, 1: True}
_SHUTDOWN_CHANGES = {0: None, 1: True}


def replay_broker_registration_change(
    image: ClusterImage, record: BrokerRegistrationChangeRecord
) -> ClusterImage:
    """Return `image` with the fields of one broker changed that the record names."""
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
    """Return `image` with a controller added, or registered anew."""
    controller = ControllerRegistration(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        is_zk_migration_ready=record.zk_migration_ready,
        listeners=endpoints_from_record(record.end_points),
        supported_features=features_from_record(record.features),
    )
    return replace(image, controllers=image.controllers.set(controller.id, controller))


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
