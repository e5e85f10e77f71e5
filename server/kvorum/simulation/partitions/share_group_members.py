"""The members of a share group, and the end of their work."""

from collections.abc import Collection, Iterator, Mapping
from random import Random
from typing import Final

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.share_partition.record_state import TERMINAL_STATES
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.share_coordinator.share_group_offset import ShareGroupOffset
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.committed_batches import Aborted, judged_batches
from kvorum.simulation.partitions.dead_letters import DeadLetters
from kvorum.simulation.partitions.ledger import Replica
from kvorum.simulation.partitions.settings import PEACE_FROM_MS, SHARE_STATE_ID, TOPIC_ID
from kvorum.simulation.partitions.share_group_ledger import ShareGroupLedger
from kvorum.simulation.partitions.share_group_settings import SHARE_GROUP, ClusterShareGroupSettings
from kvorum.simulation.partitions.share_member import ShareMember
from kvorum.simulation.partitions.stored_batches import batches_of

IS_STOPPED: Final = 0.2
STOPPED_MS_MAX: Final = 1_000
STEP_MS: Final = 12
ASSIGNED_UNTIL_MS: Final = 9_000
"""The latest time at which members can hear of a partition and have all of its records.

What has failed again and again is tried again after seconds only, as in Kafka, and a member that
has died keeps its partitions for its session.
"""
ACQUIRES_UNTIL_MS: Final = 9_800
"""The latest time at which a member acquires records of a partition that it has soon read whole."""


class ShareGroupMembers:
    """The members of the group, which an operator stops all at once and starts again."""

    def __init__(self, around: BrokerSurroundings, settings: ClusterShareGroupSettings) -> None:
        self._around = around
        self._settings = settings
        self._random: Random = around.random_for("sharers")
        ledger = ShareGroupLedger(settings, around.ledger, around.checks)
        around.share_groups[SHARE_GROUP] = self._ledger = ledger
        around.ledger.pruned.update(self._state_places())
        self._members = [ShareMember(around, ledger, self._random) for _ in range(settings.members)]

    def _state_places(self) -> list[int]:
        """Return the places of the partitions whose leaders are share coordinators."""
        indexes = range(self._settings.state_partitions)
        return [self._around.places.number(SHARE_STATE_ID, index) for index in indexes]

    def begin(self) -> None:
        """Let all of them do what they do again and again."""
        for member in self._members:
            self._around.every(STEP_MS, member.step)
        self._around.every(1_000, self._stop_all)

    def _stop_all(self) -> None:
        random = self._random
        if self._around.now_ms > PEACE_FROM_MS or random.random() > IS_STOPPED:
            return
        away_ms = random.uniform(0, STOPPED_MS_MAX)
        for member in self._members:
            member.go(away_ms, is_orderly=False)

    # --- the end ---

    def check_end(self, brokers: Mapping[int, Broker], waiting: Collection[int]) -> None:
        """Check that the group is done with what is committed, where coordinators could be."""
        if set(self._state_places()) & set(waiting):
            return
        queue = self._settings.dead_letter_queue
        letters = None
        if queue is not None:
            letters = DeadLetters(self._around, self._ledger, queue, brokers, waiting)
        for index in range(self._around.settings.partitions):
            if self._ledger.assigned_ms(index) > ASSIGNED_UNTIL_MS:
                self._around.ledger.counts["sharers: assigned too late"] += 1
            elif self._ledger.acquired_ms(index) > ACQUIRES_UNTIL_MS:
                self._around.ledger.counts["sharers: at work in the end"] += 1
            elif index in waiting or (letters is not None and letters.are_unknown(index)):
                self._around.ledger.counts["sharers: wait for an operator"] += 1
            else:
                self._check_partition(index, brokers)
                if letters is not None:
                    letters.check(index)

    def _check_partition(self, index: int, brokers: Mapping[int, Broker]) -> None:
        key = SharePartitionKey(SHARE_GROUP, TOPIC_ID, index)
        known = [one for one in (each.share_state(key) for each in brokers.values()) if one]
        replicas = [one for one in (each.replica(index) for each in brokers.values()) if one]
        message = f"{known}, {[member.describe() for member in self._members]}"
        is_kept = bool(known) and bool(replicas)
        self._around.checks.demand(promises.ALL_SHARED, message, holds=is_kept)
        state = max(known, key=lambda one: one.snapshot_epoch)
        self._ledger.check_end(
            index,
            self._shared_offsets(replicas[0]),
            state.start_offset,
            _done_offsets(state),
            message,
        )

    def _shared_offsets(self, replica: Replica) -> Iterator[int]:
        """Yield the offsets of the records that the group is to have."""
        log = replica.log
        start = log.log_start_offset
        end = log.stored_end_offset
        found = log.aborted_transactions(start, end)
        aborted = [Aborted(one.producer_id, one.first_offset) for one in found]
        for batch, is_read in judged_batches(batches_of(log, start, end), aborted):
            if is_read or self._settings.isolation is IsolationLevel.READ_UNCOMMITTED:
                yield from (one.offset for one in batch.records() if one.offset >= start)


def _done_offsets(state: ShareGroupOffset) -> set[int]:
    """Return the offsets from the start on that are done with."""
    return {
        offset
        for batch in state.state_batches
        if batch.delivery_state in TERMINAL_STATES
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
