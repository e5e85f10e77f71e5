"""The periodic tasks of an active controller."""

from collections.abc import Iterable

from kvorum.controller.api import PIECE_RECORDS, ControllerResult, Pieces, gather
from kvorum.controller.broker_changes import (
    PartitionOfTopic,
    handle_broker_fenced,
    partitions_without_leader,
    partitions_without_preferred_leader,
)
from kvorum.controller.broker_heartbeat_manager import NOTHING_READ
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.partition_change_builder import Election
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.messages.no_op_record import NoOpRecord


def no_op() -> ControllerResult[None]:
    """Return the record that keeps an idle log moving (``metadata.max.idle.interval.ms``)."""
    return ControllerResult(None, ((NoOpRecord(), 0),))


def maybe_fence_stale_broker(
    image: MetadataImage, context: ControllerRequestContext
) -> Pieces[ControllerResult[bool]]:
    """Fence the broker that has been silent longest, if its session has expired.

    In pieces, because each of its partitions is a record. The response is True where more brokers
    may have to be fenced: the caller then calls again at once.
    """
    expired = context.sessions.pop_expired(context.now_ms)
    if expired is None:
        return ControllerResult(response=False, is_atomic=False)
    broker_id, epoch = expired
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        context.sessions.forget(broker_id)
        return ControllerResult(response=True, is_atomic=False)
    if broker.epoch != epoch:
        return ControllerResult(response=True, is_atomic=False)
    records: list[RecordAndVersion] = []
    yield from gather(records, handle_broker_fenced(ClusterRules(image, context.settings), broker))
    context.sessions.touch(broker_id, is_fenced=True, metadata_offset=NOTHING_READ)
    return ControllerResult(response=True, records=tuple(records), is_atomic=False)


def maybe_balance_partition_leaders(
    image: MetadataImage, context: ControllerRequestContext
) -> Pieces[ControllerResult[bool]]:
    """Move leaderships to the preferred replicas that can lead.

    In pieces, because many partitions may be checked for few changes. The response is True where
    the limit of one run was reached: the caller then calls again at once.
    """
    rules = ClusterRules(image, context.settings)
    partitions = partitions_without_preferred_leader(image)
    return (yield from _elect(rules, partitions, Election.PREFERRED, context))


def maybe_elect_unclean_leaders(
    image: MetadataImage, context: ControllerRequestContext
) -> Pieces[ControllerResult[bool]]:
    """Elect out-of-sync leaders for partitions without a leader, in topics that allow it.

    The response is True where the limit of one run was reached: the caller calls again at once.
    """
    rules = ClusterRules(image, context.settings)
    partitions = (
        found
        for found in partitions_without_leader(image)
        if found is None or rules.is_unclean_election_enabled(found[0].name)
    )
    return (yield from _elect(rules, partitions, Election.UNCLEAN, context))


def _elect(
    rules: ClusterRules,
    partitions: Iterable[PartitionOfTopic | None],
    election: Election,
    context: ControllerRequestContext,
) -> Pieces[ControllerResult[bool]]:
    limit = context.settings.elections_per_run_max
    records: list[RecordAndVersion] = []
    for count, found in enumerate(partitions, 1):
        if len(records) >= limit:
            break
        if found is None or count % PIECE_RECORDS == 0:
            yield
        if found is None:
            continue
        change = rules.change(*found)
        change.election = election
        record = change.record()
        if record is not None:
            records.append(record)
    return ControllerResult(len(records) >= limit, tuple(records), is_atomic=False)
