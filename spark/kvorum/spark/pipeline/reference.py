"""The replica of a log that the tables are made from, and where the others differ from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvorum.spark.pipeline.divergence import differences
from kvorum.spark.pipeline.header_walk import batch_places, last_place
from kvorum.spark.pipeline.own_tables import ReplicaDivergenceRow
from kvorum.spark.pipeline.readable_replica import ENDLESS, ReadableReplica
from kvorum.spark.pipeline.replicas import Replica


def by_preference(
    replicas: Sequence[Replica], options: Mapping[str, Any]
) -> tuple[ReadableReplica, ...]:
    """Return the replicas, the one that reached furthest first: the reference.

    A log whose last batch has a higher epoch reached further than a longer one, by the rule that
    voters elect by: the end of the longer one may never have been committed.
    """
    if len(replicas) == 1:
        # There is no choice, so the end need not be known before it is read.
        return (ReadableReplica(replicas[0], ENDLESS),)
    ranked: list[tuple[tuple[int, int], ReadableReplica]] = []
    for replica in replicas:
        last = last_place(replica, options)
        if last is not None:
            rank = (last.epoch, last.next_offset)
        else:
            rank = max(
                ((file.epoch, file.offset or 0) for file in replica.snapshots), default=(0, 0)
            )
        ranked.append((rank, ReadableReplica(replica, rank[1])))
    # Of equal ones the first in order, so that a later run chooses the same.
    return tuple(each for _, each in sorted(ranked, key=lambda each: each[0], reverse=True))


def divergence_rows(
    reference: Replica, others: Sequence[Replica], options: Mapping[str, Any]
) -> Iterator[ReplicaDivergenceRow]:
    """Yield where each of the other replicas differs from the reference."""
    for replica in others:
        found = differences(batch_places(reference, options), batch_places(replica, options))
        for each in found:
            yield ReplicaDivergenceRow(
                node_id=replica.node_id,
                log_directory=replica.log_directory,
                reference_node_id=reference.node_id,
                reference_log_directory=reference.log_directory,
                kind=each.kind,
                is_divergence=each.is_divergence,
                from_offset=each.from_offset,
                to_offset=each.to_offset,
                epoch=each.epoch,
                reference_epoch=each.reference_epoch,
            )
