"""The APIs that the replica of the metadata log answers: to its peers, and about the quorum.

Their modules are imported with the replica, so that they need no lazy import here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import (
    add_raft_voter,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.primitives import Message

_APIS: Final[tuple[RaftApi[Message], ...]] = (
    fetch.API,
    vote.API,
    begin_quorum_epoch.API,
    end_quorum_epoch.API,
    describe_quorum.API,
    fetch_snapshot.API,
    add_raft_voter.API,
    remove_raft_voter.API,
    update_raft_voter.API,
)
RAFT_APIS: Final[Mapping[ApiKey, RaftApi[Message]]] = MappingProxyType(
    {api.key: api for api in _APIS}
)
