"""The core's `Identity` of a replica, from the replica's settings."""

from __future__ import annotations

from kvorum.node.raft.settings import RaftSettings
from kvorum.raft import Destination, Endpoint, Identity, ReplicaKey

_FIRST_BOOTSTRAP_ID = -2


def identity_of(settings: RaftSettings) -> Identity:
    """Return the identity of the replica with these settings."""
    servers = tuple(
        Destination(_FIRST_BOOTSTRAP_ID - index, address.host, address.port)
        for index, address in enumerate(settings.bootstrap_servers)
    )
    static = tuple(
        Destination(one.id, one.host, one.port)
        for one in settings.static_voters
        if one.id != settings.node_id
    )
    return Identity(
        key=ReplicaKey(settings.node_id, settings.directory_id),
        endpoints=tuple(Endpoint(one.name, one.host, one.port) for one in settings.local_listeners),
        listener_name=settings.controller_listener,
        can_vote=settings.can_vote,
        bootstrap=servers or static,
    )
