"""The voters of ``--standalone``: this controller alone."""

from __future__ import annotations

import random
from collections.abc import Mapping

from kvorum.node.config import NodeConfig
from kvorum.node.format.dynamic_voters import DynamicVoter, voters_by_id
from kvorum.node.format.errors import FormatError
from kvorum.wire.uuid_text import random_uuid

_HERE = "localhost"


def standalone_voters(
    config: NodeConfig, *, random_source: random.Random
) -> Mapping[int, DynamicVoter]:
    """Return this controller as the only voter, at the first address it advertises."""
    if not config.is_controller:
        raise FormatError("You can only use --standalone on a controller.")
    listener = config.listeners.advertised_controllers[0]
    directory_id = random_uuid(random_source)
    voter = DynamicVoter(config.node_id, listener.host or _HERE, listener.port, directory_id)
    return voters_by_id([voter])
