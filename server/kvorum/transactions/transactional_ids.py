"""The transactional ids of a shard, as they are committed and as the last record has them."""

from kvorum.coordinator.timeline import Timeline, TimelineMap
from kvorum.metadata.api import RequestError
from kvorum.transactions.transaction_metadata import TransactionMetadata
from kvorum.wire.error_codes import ErrorCode


class TransactionalIds:
    """The state of each id, with the history of what is not committed yet."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._latest = TimelineMap[str, TransactionMetadata](timeline)

    def committed(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the committed state of an id; None for one that does not exist."""
        return self._latest.get(transactional_id, self._timeline.committed_offset)

    def latest(self, transactional_id: str) -> TransactionMetadata | None:
        """Return what the last record says of an id, committed or not; None without one."""
        return self._latest.get(transactional_id)

    def is_pending(self, transactional_id: str) -> bool:
        """Return whether a step of the id is not committed yet, or its markers are missing."""
        latest = self._latest.get(transactional_id)
        if latest is not None and latest.state.is_prepared:
            return True
        return latest is not self.committed(transactional_id)

    def demand(self, transactional_id: str) -> TransactionMetadata:
        """Return the committed state of an id on which a step may be taken.

        Raises RequestError CONCURRENT_TRANSACTIONS for a pending id, INVALID_PRODUCER_ID_MAPPING
        for an id that does not exist.
        """
        if self.is_pending(transactional_id):
            raise RequestError.with_default_message(ErrorCode.CONCURRENT_TRANSACTIONS)
        found = self.committed(transactional_id)
        if found is None:
            raise RequestError.with_default_message(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return found

    def all_committed(self) -> list[TransactionMetadata]:
        """Return the committed states of all ids."""
        return list(self._latest.values(self._timeline.committed_offset))

    def all_latest(self) -> list[TransactionMetadata]:
        """Return what the last records say of all ids."""
        return list(self._latest.values())

    def set(self, metadata: TransactionMetadata) -> None:
        """Apply a step, or a record that is loaded."""
        self._latest.set(metadata.transactional_id, metadata)

    def remove(self, transactional_id: str) -> None:
        """Apply a tombstone."""
        self._latest.remove(transactional_id)
