"""When brokers were last heard of. Soft state: it is not in the log and dies with the leadership.

A controller that becomes active starts a new `BrokerSessions` and hands it to every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kvorum.metadata.cluster_image import ClusterImage

NEVER_SHUTTING_DOWN = -1
NOTHING_READ = -1
OFFSET_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class BrokerSession:
    """What the heartbeats of a broker said that the log does not.

    `controlled_shutdown_offset` is the log's end after the records that moved its leaderships
    away, -1 while it is not shutting down.
    """

    metadata_offset: int = NOTHING_READ
    controlled_shutdown_offset: int = NEVER_SHUTTING_DOWN

    @property
    def is_shutting_down(self) -> bool:
        """Whether the broker was granted a controlled shutdown by this controller."""
        return self.controlled_shutdown_offset != NEVER_SHUTTING_DOWN


class BrokerSessions:
    """The last contact of each broker incarnation and the state of each broker's heartbeats."""

    def __init__(self, timeout_ms: float) -> None:
        self.timeout_ms = timeout_ms
        self._contacts_ms: dict[tuple[int, int], float] = {}
        self._sessions: dict[int, BrokerSession] = {}

    def start(self, cluster: ClusterImage, now_ms: float) -> None:
        """Give every unfenced broker a full session from now on, as a new controller does."""
        for broker in cluster.brokers.values():
            if not broker.is_fenced:
                self.contact(broker.id, broker.epoch, now_ms)

    def contact(self, broker_id: int, epoch: int, now_ms: float) -> None:
        """Note that a heartbeat of this incarnation arrived."""
        # Moved to the end: the order of the dict is the order of the contacts.
        self._contacts_ms.pop((broker_id, epoch), None)
        self._contacts_ms[broker_id, epoch] = now_ms

    def is_valid(self, broker_id: int, epoch: int, now_ms: float) -> bool:
        """Tell whether this incarnation was heard of within the session timeout."""
        contact_ms = self._contacts_ms.get((broker_id, epoch))
        return contact_ms is not None and not self._is_expired(contact_ms, now_ms)

    def last_contacts_ms(self) -> Mapping[tuple[int, int], float]:
        """Return when each incarnation (broker id and epoch) was heard of last."""
        return MappingProxyType(self._contacts_ms)

    def pop_expired(self, now_ms: float) -> tuple[int, int] | None:
        """Forget the incarnation heard of longest ago if its session is over, and return it."""
        for key, contact_ms in self._contacts_ms.items():
            if self._is_expired(contact_ms, now_ms):
                del self._contacts_ms[key]
                return key
            break
        return None

    def next_expiry_ms(self) -> float | None:
        """Return when the next session will be over, None where there is none."""
        for contact_ms in self._contacts_ms.values():
            return contact_ms + self.timeout_ms
        return None

    def session(self, broker_id: int) -> BrokerSession:
        """Return what is known of the broker's heartbeats."""
        return self._sessions.get(broker_id, BrokerSession())

    def touch(self, broker_id: int, *, is_fenced: bool, metadata_offset: int) -> None:
        """Note how far the broker has read; a fenced broker is not shutting down any more."""
        session = replace(self.session(broker_id), metadata_offset=metadata_offset)
        if is_fenced:
            session = replace(session, controlled_shutdown_offset=NEVER_SHUTTING_DOWN)
        self._sessions[broker_id] = session

    def begin_controlled_shutdown(self, broker_id: int, offset: int) -> None:
        """Note the log's end when the broker's controlled shutdown began; the first one counts."""
        session = self.session(broker_id)
        if not session.is_shutting_down:
            self._sessions[broker_id] = replace(session, controlled_shutdown_offset=offset)

    def forget(self, broker_id: int) -> None:
        """Drop the state of a broker that is gone or starts anew."""
        self._sessions.pop(broker_id, None)

    def lowest_active_offset(self, cluster: ClusterImage) -> int:
        """Return how far the slowest unfenced broker that is not shutting down has read."""
        offsets = [
            self.session(broker.id).metadata_offset
            for broker in cluster.brokers.values()
            if not broker.is_fenced and not self.session(broker.id).is_shutting_down
        ]
        return min(offsets, default=OFFSET_MAX)

    def _is_expired(self, contact_ms: float, now_ms: float) -> bool:
        return contact_ms + self.timeout_ms < now_ms
