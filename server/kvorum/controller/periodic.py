"""What an active controller does without being asked."""

from __future__ import annotations

from collections.abc import Iterable

from kvorum.controller.broker_changes import fencing
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.election import Election
from kvorum.controller.leaderships import (
    PartitionOfTopic,
    partitions_without_leader,
    partitions_without_preferred_leader,
)
from kvorum.controller.result import (
    PIECE_RECORDS,
    ControllerResult,
    Pieces,
    at_once,
    gather,
)
from kvorum.controller.sessions import NOTHING_READ
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.wire.messages.no_op_record import NoOpRecord


def no_op() -> ControllerResult[None]:
    """Return the record that keeps an idle log moving (``metadata.max.idle.interval.ms``)."""
    return ControllerResult(None, ((NoOpRecord(), 0),))


def fence_stale_broker(image: MetadataImage, context: ControllerContext) -> ControllerResult[bool]:
    """Fence the broker that has been silent longest, if its session is over."""
    return at_once(fence_in_pieces(image, context))


def fence_in_pieces(
    image: MetadataImage, context: ControllerContext
) -> Pieces[ControllerResult[bool]]:
    """Do so in pieces: each of its partitions is a record.

    The answer tells whether there may be more: then call again at once.
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
    yield from gather(records, fencing(ClusterRules(image, context.settings), broker))
    context.sessions.touch(broker_id, is_fenced=True, metadata_offset=NOTHING_READ)
    return ControllerResult(response=True, records=tuple(records), is_atomic=False)


def elect_preferred_leaders(
    image: MetadataImage, context: ControllerContext
) -> ControllerResult[bool]:
    """Give partitions back to their preferred leaders where those can lead."""
    return at_once(elect_preferred_in_pieces(image, context))


def elect_preferred_in_pieces(
    image: MetadataImage, context: ControllerContext
) -> Pieces[ControllerResult[bool]]:
    """Do so in pieces: that a partition is looked at does not mean that it changes.

    The answer tells whether the limit of one run was hit: then call again at once.
    """
    rules = ClusterRules(image, context.settings)
    partitions = partitions_without_preferred_leader(image)
    return (yield from _elect(rules, partitions, Election.PREFERRED, context))


def elect_unclean_leaders(
    image: MetadataImage, context: ControllerContext
) -> ControllerResult[bool]:
    """Elect out-of-sync leaders for leaderless partitions of topics that allow it."""
    return at_once(elect_unclean_in_pieces(image, context))


def elect_unclean_in_pieces(
    image: MetadataImage, context: ControllerContext
) -> Pieces[ControllerResult[bool]]:
    """Do so in pieces.

    The answer tells whether the limit of one run was hit: then call again at once.
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
    context: ControllerContext,
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
