"""Who may join an ISR, as far as a leader can tell from its metadata (KIP-841, KIP-903)."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.cluster_image import ClusterImage

EPOCH_NOT_TOLD: Final = -1


def may_join_isr(cluster: ClusterImage, broker_id: int, told_epoch: int | None) -> bool:
    """Tell whether a broker whose last fetch named `told_epoch` may join; None: it never fetched.

    It has to be registered, unfenced and not shutting down, and the incarnation that fetched has
    to be the one that is registered: an earlier one may have had more than is left now.
    """
    broker = cluster.brokers.get(broker_id)
    if broker is None or not broker.is_active or told_epoch is None:
        return False
    return told_epoch in (EPOCH_NOT_TOLD, broker.epoch)


def is_of_past_incarnation(cluster: ClusterImage, broker_id: int, told_epoch: int) -> bool:
    """Tell whether a fetch comes from an incarnation that is known to be gone."""
    broker = cluster.brokers.get(broker_id)
    if broker is None or broker.is_fenced or told_epoch == EPOCH_NOT_TOLD:
        return False
    return told_epoch < broker.epoch
