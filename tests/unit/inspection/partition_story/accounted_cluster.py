"""A cluster that things are done to by chance, with an account of what was done when."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.support.controller_under_test import (
    PREFERRED,
    UNCLEAN,
    cluster_with_topic,
    elect,
    partition_of,
    propose_isr,
    reassign,
)

from kvorum.inspection.partition_story.change import Reason, ReasonKind
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.unregister_broker import UnregisterBrokerRequest

BROKERS: Final = (1, 2, 3, 4)
OPERATIONS: Final = 40


@dataclass(frozen=True)
class Deed:
    """The fate of the records from `first_offset` up to `end_offset`, and the reason.

    The reason explains each change of the partition in these records.
    """

    first_offset: int
    end_offset: int
    reason: Reason


class AccountedCluster:
    """Four brokers and one partition of three replicas."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.controller = cluster_with_topic(1, 2, 3, is_unclean_enabled=self.random.random() < 0.3)
        self.deeds: list[Deed] = []
        self._incarnation = 0
        kinds: tuple[Callable[[], Reason | None], ...] = (
            self._fence,
            self._fence,
            self._unfence,
            self._unfence,
            self._shut_down,
            self._shrink,
            self._expand,
            self._expand,
            self._elect_preferred,
            self._elect_unclean,
            self._reassign,
            self._cancel,
            self._unregister,
            self._restart,
        )
        while len(self.deeds) < OPERATIONS:
            first = self.controller.next_offset
            reason = self.random.choice(kinds)()
            if reason is not None:
                # The leader's own record, which the controller knows nothing of, comes first.
                self.deeds.append(Deed(first + 1, self.controller.next_offset + 1, reason))
            # As an active controller does twice a second.
            self.controller.commit(((NoOpRecord(), 0),))

    @property
    def _partition(self) -> PartitionRegistration:
        return partition_of(self.controller)

    def _in_service(self) -> list[int]:
        """Return the brokers that are neither fenced nor in controlled shutdown."""
        brokers = self.controller.image.cluster.brokers.values()
        found = (one.id for one in brokers if not (one.is_fenced or one.is_in_controlled_shutdown))
        return sorted(found)

    def _one_in_service(self) -> int | None:
        found = self._in_service()
        return self.random.choice(found) if found else None

    def _fence(self) -> Reason | None:
        broker = self._one_in_service()
        if broker is None:
            return None
        self.controller.heartbeat(broker, want_fence=True)
        return Reason(ReasonKind.BROKER_FENCED, (broker,))

    def _unfence(self) -> Reason | None:
        known = self.controller.image.cluster.brokers
        fenced = [broker for broker in BROKERS if broker in known and known[broker].is_fenced]
        if not fenced:
            return None
        broker = self.random.choice(fenced)
        if known[broker].is_in_controlled_shutdown:
            self._register_again(broker)
        self.controller.heartbeat(broker)
        return Reason(ReasonKind.BROKER_UNFENCED, (broker,))

    def _shut_down(self) -> Reason | None:
        broker = self._one_in_service()
        if broker is None:
            return None
        self.controller.heartbeat(broker, want_shut_down=True)
        # One that leads nothing has nothing to wait for.
        is_fenced = self.controller.image.cluster.brokers[broker].is_fenced
        kind = ReasonKind.BROKER_FENCED if is_fenced else ReasonKind.CONTROLLED_SHUTDOWN
        return Reason(kind, (broker,))

    def _shrink(self) -> Reason | None:
        partition = self._partition
        others = [each for each in partition.isr if each != partition.leader]
        if partition.leader == NO_LEADER or not others:
            return None
        dropped = self.random.choice(others)
        propose_isr(self.controller, *(each for each in partition.isr if each != dropped))
        return Reason(ReasonKind.ISR_SHRUNK, (dropped,))

    def _expand(self) -> Reason | None:
        partition = self._partition
        ready = {*self._in_service()} - {*partition.isr}
        missing = [each for each in partition.replicas if each in ready]
        if partition.leader == NO_LEADER or not missing:
            return None
        added = self.random.choice(missing)
        propose_isr(self.controller, *partition.isr, added)
        return Reason(ReasonKind.ISR_EXPANDED, (added,))

    def _elect_preferred(self) -> Reason | None:
        elect(self.controller, PREFERRED)
        return Reason(ReasonKind.PREFERRED_ELECTION, (self._partition.leader,))

    def _elect_unclean(self) -> Reason | None:
        if self._partition.leader != NO_LEADER:
            return None
        elect(self.controller, UNCLEAN)
        return Reason(ReasonKind.UNCLEAN_ELECTION)

    def _reassign(self) -> Reason | None:
        before = self._partition
        reassign(self.controller, self.random.sample(BROKERS, self.random.choice((2, 3))))
        after = self._partition
        was_going_on = bool(before.adding_replicas or before.removing_replicas)
        if after.adding_replicas or after.removing_replicas:
            is_new = not was_going_on
            return Reason(
                ReasonKind.REASSIGNMENT_BEGUN if is_new else ReasonKind.REASSIGNMENT_CHANGED
            )
        original = {*before.replicas} - {*before.adding_replicas}
        is_back = was_going_on and {*after.replicas} == original
        return Reason(
            ReasonKind.REASSIGNMENT_CANCELLED if is_back else ReasonKind.REASSIGNMENT_COMPLETED
        )

    def _cancel(self) -> Reason | None:
        reassign(self.controller, None)
        return Reason(ReasonKind.REASSIGNMENT_CANCELLED)

    def _unregister(self) -> Reason | None:
        broker = self._one_in_service()
        if broker is None:
            return None
        self.controller.ask(UnregisterBrokerRequest(broker_id=broker))
        return Reason(ReasonKind.BROKER_UNREGISTERED, (broker,))

    def _restart(self) -> Reason | None:
        """Register a broker that is in service, or that was unregistered."""
        broker = self.random.choice(BROKERS)
        known = self.controller.image.cluster.brokers.get(broker)
        if known is not None and (known.is_fenced or known.is_in_controlled_shutdown):
            return None
        self._register_again(broker)
        return Reason(ReasonKind.BROKER_RESTARTED, (broker,))

    def _register_again(self, broker: int) -> None:
        self._incarnation += 1
        self.controller.now_ms += 1_000_000
        self.controller.register(broker, incarnation=self._incarnation)
