"""Eligibility of replicas for an ISR, by the leader's metadata (KIP-841, KIP-903)."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.cluster_image import ClusterImage

EPOCH_UNKNOWN: Final = -1


def may_join_isr(cluster: ClusterImage, broker_id: int, fetch_epoch: int | None) -> bool:
    """Return whether a broker may join the ISR; `fetch_epoch` is None if it has never fetched.

    The broker must be registered, unfenced and not shutting down, and the incarnation that fetched
    must be the registered one: an earlier incarnation may have had records that are lost now.
    """
    broker = cluster.brokers.get(broker_id)
    if broker is None or not broker.is_active or fetch_epoch is None:
        return False
    return fetch_epoch in (EPOCH_UNKNOWN, broker.epoch)


def is_of_past_incarnation(cluster: ClusterImage, broker_id: int, fetch_epoch: int) -> bool:
    """Return whether a fetch comes from an incarnation that has been replaced."""
    broker = cluster.brokers.get(broker_id)
    if broker is None or broker.is_fenced or fetch_epoch == EPOCH_UNKNOWN:
        return False
    return fetch_epoch < broker.epoch
