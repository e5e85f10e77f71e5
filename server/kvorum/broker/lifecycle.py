"""The lifecycle of a broker at its controller: registered, caught up, unfenced, stopped (KIP-631).

Pure: `due` returns the request to send now, the `on_…` methods handle its outcome, and
`next_due_ms` is the time of the next call of `due`. At most one request is in flight at a time.

::

    NOT_RUNNING -> STARTING -> RECOVERY -> RUNNING -> PENDING_CONTROLLED_SHUTDOWN -> SHUTTING_DOWN
                      registered,  caught up,  unfenced,             asked to stop
                      (stopped before it ran: straight to SHUTTING_DOWN)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, unique
from math import inf
from typing import NamedTuple

from kvorum.metadata import directory_ids
from kvorum.metadata.cluster_image import Endpoint, write_endpoints, write_features
from kvorum.metadata.features import VersionRange
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

STARTING_INTERVAL_MS = 10
"""The time between heartbeats of a broker that has yet to catch up."""
FIRST_SHUTDOWN_INTERVAL_MS = 50
"""The time to the second heartbeat of a broker in controlled shutdown."""


@unique
class BrokerState(IntEnum):
    """States of a broker; the numbers are those of Kafka's BrokerState metric."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """The contents of a broker's registration."""

    node_id: int
    cluster_id: str
    incarnation_id: bytes
    listeners: tuple[Endpoint, ...]
    rack: str | None
    directory_ids: tuple[bytes, ...]
    previous_epoch: int = -1


class LocalView(NamedTuple):
    """The broker's own state at the time of a request.

    `supported_features` are the levels to register with, which may depend on those of the cluster.
    `metadata_offset` is the highest offset that the broker has replayed; `cordoned_directories` is
    None where the cluster's metadata.version does not support them. The broker wants to be fenced
    until `is_ready_to_unfence`: its logs are open.
    """

    supported_features: Mapping[str, VersionRange]
    metadata_offset: int
    cordoned_directories: tuple[bytes, ...] | None
    is_ready_to_unfence: bool = True


class BrokerLifecycle:
    """The lifecycle of one incarnation of a broker."""

    def __init__(
        self, identity: BrokerIdentity, *, heartbeat_interval_ms: int, now_ms: float
    ) -> None:
        self.identity = identity
        self.state = BrokerState.STARTING
        self.epoch = -1
        self.is_registered = False
        self.next_due_ms: float | None = now_ms
        """The time of the next request; None while one is in flight, and after the end."""
        self._interval_ms = heartbeat_interval_ms
        self._is_caught_up = False
        self._next_due_at_latest_ms = inf
        self._has_asked_to_stop = False
        self._offline_directories: list[bytes] = []
        self._acknowledged_count = 0
        self._sent_count = 0

    def due(self, view: LocalView) -> BrokerRegistrationRequest | BrokerHeartbeatRequest:
        """Return the request to send at `next_due_ms`; a call of an `on_…` method must follow."""
        self.next_due_ms = None
        if not self.is_registered:
            return self._registration(view.supported_features)
        self._sent_count = len(self._offline_directories)
        return BrokerHeartbeatRequest(
            broker_id=self.identity.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=view.metadata_offset,
            want_fence=not (self._is_caught_up and view.is_ready_to_unfence),
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=list(self._offline_directories),
            cordoned_log_dirs=(
                list(view.cordoned_directories)
                if self._is_caught_up and view.cordoned_directories is not None
                else None
            ),
        )

    def on_registration(self, response: BrokerRegistrationResponse, now_ms: float) -> None:
        """Handle the response to a registration."""
        if response.error_code != ErrorCode.NONE:
            self.on_failure(now_ms)
            return
        self.epoch = response.broker_epoch
        self.is_registered = True
        self._schedule(now_ms)

    def on_heartbeat(self, response: BrokerHeartbeatResponse, now_ms: float) -> None:
        """Handle the response to a heartbeat, and move to the state that it allows."""
        if response.error_code != ErrorCode.NONE:
            self.on_failure(now_ms)
            return
        self._acknowledged_count = self._sent_count
        match self.state:
            case BrokerState.STARTING:
                self._after_starting(response, now_ms)
            case BrokerState.RECOVERY if not response.is_fenced:
                self.state = BrokerState.RUNNING
                self._schedule(now_ms + self._interval_ms)
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                self._after_shutdown_request(response, now_ms)
            case _:
                self._schedule(now_ms + self._interval_ms)

    def on_failure(self, now_ms: float) -> None:
        """Handle a request without a response, or with an error: retry an interval later."""
        self._schedule(now_ms + self._interval_ms)

    def register_again(self, now_ms: float) -> None:
        """Register again, because the log does not contain the whole registration."""
        self.is_registered = False
        if self.next_due_ms is not None:
            self._schedule(now_ms)

    def propagate_directory_failure(self, directory_id: bytes, now_ms: float) -> None:
        """Name a log directory as offline from the next heartbeat on, which is due now."""
        self._offline_directories.append(directory_id)
        self.hurry(now_ms)

    def is_failure_known(self, directory_id: bytes) -> bool:
        """Return whether the controller has accepted a heartbeat that names the directory."""
        return directory_id in self._offline_directories[: self._acknowledged_count]

    def hurry(self, now_ms: float) -> None:
        """Send the next heartbeat at once, because what it says has changed."""
        if self.next_due_ms is None:
            self._next_due_at_latest_ms = now_ms
        else:
            self._schedule(now_ms)

    def begin_shutdown(self, now_ms: float) -> None:
        """Begin a controlled shutdown; a broker that is not running stops at once."""
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return
        if self.state is not BrokerState.RUNNING:
            self.end()
            return
        self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        if self.next_due_ms is not None:
            self._schedule(now_ms)

    def end(self) -> None:
        """Stop at once, without any further request."""
        self.state = BrokerState.SHUTTING_DOWN
        self.next_due_ms = None

    def _after_starting(self, response: BrokerHeartbeatResponse, now_ms: float) -> None:
        if response.is_caught_up:
            self.state = BrokerState.RECOVERY
            self._is_caught_up = True
            self._schedule(now_ms)
        else:
            self._schedule(now_ms + STARTING_INTERVAL_MS)

    def _after_shutdown_request(self, response: BrokerHeartbeatResponse, now_ms: float) -> None:
        if response.should_shut_down:
            self.end()
        elif self._has_asked_to_stop:
            self._schedule(now_ms + self._interval_ms)
        else:
            # The previous heartbeat may have been sent before the shutdown began: ask again soon.
            self._has_asked_to_stop = True
            self._schedule(now_ms + FIRST_SHUTDOWN_INTERVAL_MS)

    def _schedule(self, at_ms: float) -> None:
        if self.state is not BrokerState.SHUTTING_DOWN:
            self.next_due_ms = min(at_ms, self._next_due_at_latest_ms)
            self._next_due_at_latest_ms = inf

    def _registration(
        self, supported_features: Mapping[str, VersionRange]
    ) -> BrokerRegistrationRequest:
        identity = self.identity
        return BrokerRegistrationRequest(
            broker_id=identity.node_id,
            cluster_id=identity.cluster_id,
            incarnation_id=identity.incarnation_id,
            listeners=write_endpoints(identity.listeners, BrokerRegistrationRequest.Listener),
            features=write_features(supported_features.items(), BrokerRegistrationRequest.Feature),
            rack=identity.rack,
            log_dirs=sorted(identity.directory_ids, key=directory_ids.in_kafka_order),
            previous_broker_epoch=identity.previous_epoch,
        )
