"""The story of a partition, on logs of a controller that was made to write them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

import pytest
from tests.support.controller_under_test import (
    PREFERRED,
    UNCLEAN,
    cluster_with_topic,
    elect,
    fence,
    partition_of,
    propose_isr,
    reassign,
)
from tests.support.spark.small_logs import written_records

from kvorum.history import LogRecord, MetadataHistory
from kvorum.inspection.history_source import HistorySource
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.moment import ENDLESS
from kvorum.inspection.partition_story.change import PartitionChange, Reason, ReasonKind
from kvorum.inspection.partition_story.story import (
    NoSuchPartitionError,
    PartitionStory,
    partition_story,
    story_lines,
)
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.unregister_broker import UnregisterBrokerRequest

BROKERS: Final = (1, 2, 3, 4)
OPERATIONS: Final = 40
HISTORIES = 100
_BESIDES_A_LOSS = {ReasonKind.UNCLEAN_ELECTION, ReasonKind.REASSIGNMENT_COMPLETED}
_BESIDES_AN_ISR = {ReasonKind.REASSIGNMENT_COMPLETED, ReasonKind.LEADER_RECOVERED}
# The side effects of a deed.
_BESIDES = {
    ReasonKind.BROKER_FENCED: _BESIDES_A_LOSS,
    ReasonKind.BROKER_UNREGISTERED: _BESIDES_A_LOSS,
    ReasonKind.BROKER_RESTARTED: _BESIDES_A_LOSS,
    ReasonKind.CONTROLLED_SHUTDOWN: _BESIDES_A_LOSS,
    ReasonKind.BROKER_UNFENCED: {ReasonKind.UNCLEAN_ELECTION},
    ReasonKind.ISR_EXPANDED: _BESIDES_AN_ISR,
    ReasonKind.ISR_SHRUNK: _BESIDES_AN_ISR,
}


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


def story_of(
    records: list[LogRecord], *, topic: str = "orders", end_offset: int = ENDLESS
) -> PartitionStory:
    source = HistorySource(MetadataHistory(), iter(records))
    return partition_story(source, topic, 0, end_offset=end_offset)


def is_explained(change: PartitionChange, deed: Deed) -> bool:
    """Return whether the change has the reason of the deed, and none that it cannot have."""
    if change.reasons == (Reason(ReasonKind.REASSIGNMENT_COMPLETED),):
        # An election may find that all replicas of a reassignment are in sync, and complete it.
        return deed.reason.kind in {
            ReasonKind.PREFERRED_ELECTION,
            ReasonKind.REASSIGNMENT_COMPLETED,
        }
    if change.reasons == (Reason(ReasonKind.UNCLEAN_ELECTION),):
        # A broker that comes back lets the controller elect another one too.
        return deed.reason.kind in {ReasonKind.BROKER_UNFENCED, ReasonKind.UNCLEAN_ELECTION}
    others = {one.kind for one in change.reasons if one != deed.reason}
    return deed.reason in change.reasons and others <= _BESIDES.get(deed.reason.kind, set())


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_the_reasons_are_what_was_done(seed: int) -> None:
    cluster = AccountedCluster(seed)
    story = story_of(written_records(cluster.controller.records))
    created, *changes = story.changes
    assert created.reasons == (Reason(ReasonKind.PARTITION_CREATED),)
    for change in changes:
        (deed,) = (
            deed for deed in cluster.deeds if deed.first_offset <= change.offset < deed.end_offset
        )
        assert is_explained(change, deed), (change, deed)
    present, expected = story.present, partition_of(cluster.controller)
    assert (present.leader, present.isr) == (expected.leader, expected.isr)
    assert present.replicas == expected.replicas


def test_the_histories_have_every_reason() -> None:
    found = {
        reason.kind
        for seed in range(HISTORIES)
        for change in story_of(written_records(AccountedCluster(seed).controller.records)).changes
        for reason in change.reasons
    }
    assert found >= set(ReasonKind) - {
        ReasonKind.OLDER_THAN_LOG,
        ReasonKind.DIRECTORY_FAILED,
        ReasonKind.DIRECTORY_ASSIGNED,
        ReasonKind.ELR_CHANGED,
        ReasonKind.UNKNOWN,
    }


def test_a_story_in_sentences() -> None:
    controller = cluster_with_topic(1, 2)
    fence(controller, 1)
    lines = list(story_lines(story_of(written_records(controller.records))))
    assert lines[1].startswith("  leader 2 since offset ")
    assert lines[1].endswith(": broker 1 was fenced")
    assert lines[3].endswith(": the partition was created")
    assert lines[-1].endswith(
        ": broker 1 was fenced: leader 1 -> 2, leader epoch 0 -> 1, isr 1,2 -> 2"
    ), lines


def test_a_story_as_of_an_earlier_offset() -> None:
    controller = cluster_with_topic(1, 2)
    end = controller.next_offset + 1
    fence(controller, 1)
    story = story_of(written_records(controller.records), end_offset=end)
    assert story.present.leader == 1
    assert story.end.offset == end - 1


def test_a_story_ends_before_the_damage_of_the_log() -> None:
    controller = cluster_with_topic(1, 2)
    end = controller.next_offset + 1
    fence(controller, 1)

    def damaged_at(offset: int) -> HistorySource:
        def records() -> Iterator[LogRecord]:
            for record in written_records(controller.records):
                if record.offset == offset:
                    raise MetadataSourceError("the file is damaged")
                yield record

        return HistorySource(MetadataHistory(), records())

    story = partition_story(damaged_at(end), "orders", 0, end_offset=ENDLESS)
    assert story.stopped_by == "the file is damaged"
    assert (story.end.offset, story.present.leader) == (end - 1, 1)
    with pytest.raises(MetadataSourceError, match="the file is damaged"):
        partition_story(damaged_at(1), "orders", 0, end_offset=ENDLESS)


def test_a_partition_that_is_not_there() -> None:
    controller = cluster_with_topic(1, 2)
    with pytest.raises(NoSuchPartitionError, match="there is no partition 0 of topic other"):
        story_of(written_records(controller.records), topic="other")
    controller.ask(
        DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="orders")])
    )
    with pytest.raises(NoSuchPartitionError, match="it was deleted at offset"):
        story_of(written_records(controller.records))
