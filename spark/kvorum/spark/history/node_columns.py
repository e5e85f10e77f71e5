"""Endpoints, features and log directories of nodes, as rows contain them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvorum.metadata.cluster_image import BrokerRegistration, Endpoint
from kvorum.metadata.features import VersionRange
from kvorum.spark.history.columns import EndpointColumn, FeatureRangeColumn
from kvorum.spark.history.node_rows import BrokerState
from kvorum.wire.uuid_text import uuid_to_text


def state_of(broker: BrokerRegistration) -> BrokerState:
    """Return the state of a registered broker."""
    if broker.is_fenced:
        return BrokerState.FENCED
    if broker.is_in_controlled_shutdown:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def endpoint_columns(endpoints: Iterable[Endpoint]) -> tuple[EndpointColumn, ...]:
    """Return endpoints in their order."""
    return tuple(
        EndpointColumn(each.listener, each.host, each.port, each.security_protocol)
        for each in endpoints
    )


def feature_columns(features: Mapping[str, VersionRange]) -> tuple[FeatureRangeColumn, ...]:
    """Return supported features by name."""
    return tuple(
        FeatureRangeColumn(name, range_.min, range_.max)
        for name, range_ in sorted(features.items())
    )


def log_dir_texts(directories: Iterable[bytes]) -> tuple[str, ...]:
    """Return directory ids as Kafka prints them."""
    return tuple(uuid_to_text(directory) for directory in directories)
