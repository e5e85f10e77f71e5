"""Checks of a manual replica assignment in a request."""

from collections.abc import Sequence

from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode


def check_assignment(
    cluster: ClusterImage, replicas: Sequence[int], *, replication_factor: int | None
) -> None:
    """Raise `RequestError` unless `replicas` are brokers that take replicas, each named once.

    Such a broker is registered, and has a log directory that is not cordoned (KIP-1066).
    `replication_factor` is that of the preceding partitions, or None for the first one.
    """
    if not replicas:
        raise invalid_assignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(replicas):
        if broker_id not in cluster.brokers:
            raise invalid_assignment(
                f"The manual partition assignment includes broker {broker_id}, but no such "
                "broker is registered."
            )
        if not cluster.brokers[broker_id].has_uncordoned_directory:
            raise invalid_assignment(
                f"The manual partition assignment includes broker {broker_id}, but all its log "
                "directories are cordoned."
            )
        if broker_id == previous:
            raise invalid_assignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise invalid_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )


def check_some_replica_is_active(
    cluster: ClusterImage, replicas: Sequence[int], *, partition: int
) -> None:
    """Raise `RequestError` where no replica could lead the partition."""
    if not any(cluster.is_broker_active(broker_id) for broker_id in replicas):
        raise invalid_assignment(
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown."
        )


def invalid_assignment(message: str) -> RequestError:
    """Return the refusal INVALID_REPLICA_ASSIGNMENT with a message."""
    return RequestError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
