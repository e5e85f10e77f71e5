"""The records of a share group that are in its dead-letter queue in the end (KIP-1191)."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from kvorum.broker.dead_letter_queue.dead_letter_records import OFFSET, PARTITION
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.ledger import Replica
from kvorum.simulation.partitions.settings import DEAD_LETTERS_ID, TOPIC_ID
from kvorum.simulation.partitions.share_group_ledger import ShareGroupLedger
from kvorum.simulation.partitions.share_group_settings import ClusterDeadLetterQueueSettings
from kvorum.simulation.partitions.stored_batches import batches_of
from kvorum.wire.records import Record


class _Content(NamedTuple):
    """The key and the value of a producer, or of a copy; a letter without a copy has neither."""

    key: bytes | None = None
    value: bytes | None = None


class DeadLetters:
    """The letters by partition and offset of their records; a record may have several.

    Those in partitions of the queue whose places are in `waiting` are unknown: they have no leader.
    """

    def __init__(
        self,
        around: BrokerSurroundings,
        ledger: ShareGroupLedger,
        queue: ClusterDeadLetterQueueSettings,
        brokers: Mapping[int, Broker],
        waiting: Collection[int],
    ) -> None:
        self._around = around
        self._ledger = ledger
        self._queue = queue
        self._brokers = brokers
        self._unknown = {
            index
            for index in range(queue.partitions)
            if around.places.number(DEAD_LETTERS_ID, index) in waiting
        }
        self._letters: defaultdict[int, defaultdict[int, list[_Content]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for index in set(range(queue.partitions)) - self._unknown:
            self._read(index)

    def _read(self, index: int) -> None:
        replica = self._replica(self._around.places.number(DEAD_LETTERS_ID, index))
        if replica is None:
            self._unknown.add(index)
            return
        for record in _records(replica):
            headers = dict(record.headers)
            partition = int(headers[PARTITION] or b"")
            offset = int(headers[OFFSET] or b"")
            self._letters[partition][offset].append(_Content(record.key, record.value))
            self._around.ledger.counts["sharers: dead letters"] += 1

    def are_unknown(self, partition: int) -> bool:
        """Return whether the letters of a partition cannot be read, and may not come either."""
        return partition % self._queue.partitions in self._unknown

    def check(self, partition: int) -> None:
        """Check the letters of a partition, where they are known, and that no record lacks one."""
        letters = self._letters[partition]
        place = self._around.places.number(TOPIC_ID, partition)
        replica = self._replica(place)
        originals = {} if replica is None else {one.offset: one for one in _records(replica)}
        for offset, contents in letters.items():
            self._ledger.check_letter(partition, offset, f"{contents}")
            self._check_contents(contents, originals.get(offset), f"{partition}-{offset}")
        for offset in self._ledger.dead_offsets(partition):
            message = f"{partition}-{offset}"
            has_letter = offset in letters
            self._around.checks.demand(promises.ALL_HAVE_LETTERS, message, holds=has_letter)

    def _check_contents(
        self, contents: list[_Content], original: Record | None, message: str
    ) -> None:
        """Check copies; a letter has none where the leader could not read the record any more."""
        allowed = {_Content()}
        if self._queue.is_record_copied:
            if original is None:
                return
            allowed.add(_Content(original.key, original.value))
        is_whole = set(contents) <= allowed
        message = f"{message}: {contents}, not {allowed}"
        self._around.checks.demand(promises.LETTERS_ARE_WHOLE, message, holds=is_whole)

    def _replica(self, place: int) -> Replica | None:
        """Return a replica of a partition that can be read."""
        replicas = (one.replica(place) for one in self._brokers.values())
        return next((one for one in replicas if one is not None), None)


def _records(replica: Replica) -> Iterator[Record]:
    """Yield all records of a log that producers have sent."""
    log = replica.log
    for batch in batches_of(log, log.log_start_offset, log.stored_end_offset):
        if not batch.is_control:
            yield from batch.records()
