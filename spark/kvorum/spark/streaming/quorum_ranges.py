"""Reading a range of a quorum's log: its batches, or the damage where the log has none any more."""

from collections.abc import Iterator

from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.entry_reader import BatchOrDamage
from kvorum.quorum_client.client import QuorumClient
from kvorum.quorum_client.fetch import fetch
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


def read_log(
    client: QuorumClient, start: OffsetAndEpoch, end_offset: int, *, path: str
) -> Iterator[BatchOrDamage]:
    """Yield the batches that begin from `start` on and before `end_offset`, all committed.

    `start.epoch` is as in `fetch`. Where the log does not have them any more, the rest is one
    `Damage`. Raises `QuorumError`.
    """
    place = start
    while place.offset < end_offset:
        fetched = fetch(client, place, reach=end_offset)
        if fetched.snapshot is not None:
            reason = (
                f"the controllers have no records before {fetched.log_start_offset} any more, but "
                f"the snapshot of offset {fetched.snapshot.offset}"
            )
            yield Damage(DamageKind.DELETED, path, 0, place.offset, end_offset - 1, reason)
            return
        for batch in fetched.batches:
            if batch.base_offset >= end_offset:
                return
            # A batch that begins before the range belongs to the range before.
            if batch.base_offset >= place.offset:
                yield batch
            place = OffsetAndEpoch(batch.next_offset, batch.partition_leader_epoch)
