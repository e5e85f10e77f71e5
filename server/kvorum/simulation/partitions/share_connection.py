"""A member's connection to the leader of some of its partitions, and its share session there.

It does what Kafka's ShareSessionHandler does; what the member acquired ends with the session.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType
from kvorum.broker.share_session.session import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from kvorum.simulation.partitions.open_connection import OpenConnection
from kvorum.simulation.partitions.settings import TOPIC_ID
from kvorum.simulation.partitions.share_group_settings import SHARE_GROUP
from kvorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kvorum.wire.messages.share_fetch import ShareFetchRequest
from kvorum.wire.records import RecordBatch

WAIT_MS: Final = 40
MIN_BYTES: Final = 1


class HeldRecord(NamedTuple):
    """A record that a member has acquired, by its partition and its offset."""

    partition: int
    offset: int


class _SaidBatch(NamedTuple):
    """The offsets from one to another that a member says one thing of."""

    first_offset: int
    last_offset: int
    kind: AcknowledgeType


class ShareFetchLimits(NamedTuple):
    """The limits of a fetch, and how strictly they are meant (KIP-1206)."""

    max_records: int
    batch_size: int
    acquire_mode: int
    max_bytes: int


class ShareConnection:
    """A connection to one process of a broker."""

    def __init__(self, member_id: str, broker: int, incarnation: int) -> None:
        self.broker = broker
        self.opened = OpenConnection(incarnation)
        self.held: dict[HeldRecord, bool] = {}
        """The records that were acquired, and whether there is one: else it is a gap."""
        self.member_id = member_id
        self._epoch = INITIAL_EPOCH
        self._known: set[int] = set()

    @property
    def has_session(self) -> bool:
        """Whether the broker may know of a session."""
        return self._epoch != INITIAL_EPOCH

    def advance(self) -> None:
        """Note that a request of the session is answered."""
        self._epoch = next_epoch(self._epoch)

    def fetch(
        self,
        wanted: set[int],
        said: Mapping[HeldRecord, AcknowledgeType],
        limits: ShareFetchLimits,
        *,
        is_last: bool,
    ) -> ShareFetchRequest:
        """Return a fetch of partitions that says what became of records; the last one reads none.

        What it says something of is held no longer, but for renewed records.
        """
        is_renewal = AcknowledgeType.RENEW in said.values()
        batches = self._let_go(said)
        added = wanted - self._known
        request = ShareFetchRequest(
            group_id=SHARE_GROUP,
            member_id=self.member_id,
            share_session_epoch=FINAL_EPOCH if is_last else self._epoch,
            topics=_topics(added | batches.keys(), batches),
        )
        if is_renewal:
            request.is_renew_ack = True
            request.max_bytes = 0
        elif not is_last:
            request.max_wait_ms = WAIT_MS
            request.min_bytes = MIN_BYTES
            request.max_bytes = limits.max_bytes
            request.max_records = limits.max_records
            request.batch_size = limits.batch_size
            request.share_acquire_mode = limits.acquire_mode
        forgotten = self._known - wanted
        if forgotten and not is_last:
            topic = ShareFetchRequest.ForgottenTopic(TOPIC_ID, sorted(forgotten))
            request.forgotten_topics_data = [topic]
        self._known = wanted | (batches.keys() - forgotten)
        return request

    def acknowledge(self, said: Mapping[HeldRecord, AcknowledgeType]) -> ShareAcknowledgeRequest:
        """Return a request that only says what became of records; see `fetch`."""
        is_renewal = AcknowledgeType.RENEW in said.values()
        partitions = [
            ShareAcknowledgeRequest.AcknowledgePartition(
                index,
                [
                    ShareAcknowledgeRequest.AcknowledgementBatch(first, last, [kind])
                    for first, last, kind in batches
                ],
            )
            for index, batches in self._let_go(said).items()
        ]
        return ShareAcknowledgeRequest(
            group_id=SHARE_GROUP,
            member_id=self.member_id,
            share_session_epoch=self._epoch,
            is_renew_ack=is_renewal,
            topics=[ShareAcknowledgeRequest.AcknowledgeTopic(TOPIC_ID, partitions)],
        )

    def take(self, partition: int, first: int, last: int, batches: Iterable[RecordBatch]) -> None:
        """Note that the member has acquired the offsets from one to another."""
        there = {
            record.offset for batch in batches if not batch.is_control for record in batch.records()
        }
        for offset in range(first, last + 1):
            self.held[HeldRecord(partition, offset)] = offset in there

    def _let_go(self, said: Mapping[HeldRecord, AcknowledgeType]) -> dict[int, list[_SaidBatch]]:
        """Return what is said by partition, in batches; hold the records no longer."""
        batches: dict[int, list[_SaidBatch]] = {}
        for record in sorted(said):
            kind = said[record]
            of_partition = batches.setdefault(record.partition, [])
            last = of_partition[-1] if of_partition else None
            if last is not None and last.kind is kind and last.last_offset == record.offset - 1:
                of_partition[-1] = last._replace(last_offset=record.offset)
            else:
                of_partition.append(_SaidBatch(record.offset, record.offset, kind))
            if kind is not AcknowledgeType.RENEW:
                del self.held[record]
        return batches


def _topics(
    partitions: set[int], said: Mapping[int, list[_SaidBatch]]
) -> list[ShareFetchRequest.FetchTopic]:
    named = [
        ShareFetchRequest.FetchPartition(
            index,
            acknowledgement_batches=[
                ShareFetchRequest.AcknowledgementBatch(first, last, [kind])
                for first, last, kind in said.get(index, ())
            ],
        )
        for index in sorted(partitions)
    ]
    return [ShareFetchRequest.FetchTopic(TOPIC_ID, named)] if named else []
