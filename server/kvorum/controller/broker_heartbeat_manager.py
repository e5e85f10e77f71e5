"""The sessions of brokers: the last heartbeat of each one. Soft state that is not in the log.

A controller that becomes active makes a new `BrokerHeartbeatManager` and passes it to every call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kvorum.metadata.cluster_image import ClusterImage

NEVER_SHUTTING_DOWN = -1
NOTHING_READ = -1
OFFSET_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatState:
    """The state of a broker's heartbeats that is not in the log.

    `controlled_shutdown_offset` is the log's end after the records that moved the broker's
    leaderships away, or -1 while the broker is not shutting down.
    """

    metadata_offset: int = NOTHING_READ
    controlled_shutdown_offset: int = NEVER_SHUTTING_DOWN

    @property
    def is_shutting_down(self) -> bool:
        """Whether this controller has granted the broker a controlled shutdown."""
        return self.controlled_shutdown_offset != NEVER_SHUTTING_DOWN


class _Contact(NamedTuple):
    """The time of a heartbeat, and the time that sessions had left out until then."""

    now_ms: float
    left_out_ms: float


class BrokerHeartbeatManager:
    """The last contact of each broker incarnation and the state of each broker's heartbeats.

    A session counts only the time in which the controller itself had turns: without one, it
    receives no heartbeats, and the brokers are not to blame.
    """

    def __init__(self, timeout_ms: float) -> None:
        self.timeout_ms = timeout_ms
        self._contacts: dict[tuple[int, int], _Contact] = {}
        self._left_out_ms = 0.0
        self._sessions: dict[int, BrokerHeartbeatState] = {}

    def start(self, cluster: ClusterImage, now_ms: float) -> None:
        """Begin a full session for every unfenced broker, as a new active controller does."""
        for broker in cluster.brokers.values():
            if not broker.is_fenced:
                self.contact(broker.id, broker.epoch, now_ms)

    def contact(self, broker_id: int, epoch: int, now_ms: float) -> None:
        """Record that a heartbeat of this incarnation has arrived."""
        # The entry moves to the end: the dict is kept in the order of the contacts.
        self._contacts.pop((broker_id, epoch), None)
        self._contacts[broker_id, epoch] = _Contact(now_ms, self._left_out_ms)

    def leave_out(self, delay_ms: float) -> None:
        """Leave a time in which the controller had no turn out of every session."""
        self._left_out_ms += delay_ms

    def is_valid(self, broker_id: int, epoch: int, now_ms: float) -> bool:
        """Return whether this incarnation has sent a heartbeat within the session timeout."""
        contact = self._contacts.get((broker_id, epoch))
        return contact is not None and not self._is_expired(contact, now_ms)

    def last_contacts_ms(self) -> Mapping[tuple[int, int], float]:
        """Return the time of the last heartbeat of each incarnation (broker id and epoch)."""
        return {incarnation: contact.now_ms for incarnation, contact in self._contacts.items()}

    def pop_expired(self, now_ms: float) -> tuple[int, int] | None:
        """Remove and return the incarnation silent longest, if its session has expired."""
        for key, contact in self._contacts.items():
            if self._is_expired(contact, now_ms):
                del self._contacts[key]
                return key
            break
        return None

    def session(self, broker_id: int) -> BrokerHeartbeatState:
        """Return the state of the broker's heartbeats."""
        return self._sessions.get(broker_id, BrokerHeartbeatState())

    def touch(self, broker_id: int, *, is_fenced: bool, metadata_offset: int) -> None:
        """Record the broker's metadata offset; a fenced broker is no longer shutting down."""
        session = replace(self.session(broker_id), metadata_offset=metadata_offset)
        if is_fenced:
            session = replace(session, controlled_shutdown_offset=NEVER_SHUTTING_DOWN)
        self._sessions[broker_id] = session

    def begin_controlled_shutdown(self, broker_id: int, offset: int) -> None:
        """Record the log's end at the start of a controlled shutdown; the first call counts."""
        session = self.session(broker_id)
        if not session.is_shutting_down:
            self._sessions[broker_id] = replace(session, controlled_shutdown_offset=offset)

    def forget(self, broker_id: int) -> None:
        """Remove the state of a broker that is gone or has registered again."""
        self._sessions.pop(broker_id, None)

    def lowest_active_offset(self, cluster: ClusterImage) -> int:
        """Return the lowest metadata offset among unfenced brokers that are not shutting down."""
        offsets = [
            self.session(broker.id).metadata_offset
            for broker in cluster.brokers.values()
            if not broker.is_fenced and not self.session(broker.id).is_shutting_down
        ]
        return min(offsets, default=OFFSET_MAX)

    def _is_expired(self, contact: _Contact, now_ms: float) -> bool:
        left_out_ms = self._left_out_ms - contact.left_out_ms
        return contact.now_ms + self.timeout_ms + left_out_ms < now_ms
