"""Who may ask what of a node: the operation that each whole request needs, and who decides.

Some requests ask for many things, each with a permission of its own. What they contain is looked
at by whoever answers them: `kvorum.controller.requests` for the controller, the views and handlers
for the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.access import UNRESTRICTED, Access, AuthorizerRules, host_text
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.principal import Principal
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode

_ACTION: Final = AclOperation.CLUSTER_ACTION
_ALTER: Final = AclOperation.ALTER
_DESCRIBE: Final = AclOperation.DESCRIBE
_DESCRIBE_CONFIGS: Final = AclOperation.DESCRIBE_CONFIGS

ON_CONTROLLER: Final[Mapping[int, AclOperation]] = MappingProxyType(
    {
        1: _ACTION,  # Fetch
        29: _DESCRIBE,  # DescribeAcls
        30: _ALTER,  # CreateAcls
        31: _ALTER,  # DeleteAcls
        43: _ALTER,  # ElectLeaders
        45: _ALTER,  # AlterPartitionReassignments
        46: _DESCRIBE,  # ListPartitionReassignments
        49: AclOperation.ALTER_CONFIGS,  # AlterClientQuotas
        50: _DESCRIBE,  # DescribeUserScramCredentials
        51: _ALTER,  # AlterUserScramCredentials
        52: _ACTION,  # Vote
        53: _ACTION,  # BeginQuorumEpoch
        54: _ACTION,  # EndQuorumEpoch
        55: _DESCRIBE,  # DescribeQuorum
        56: _ACTION,  # AlterPartition
        57: _ALTER,  # UpdateFeatures
        58: _ACTION,  # Envelope
        59: _ACTION,  # FetchSnapshot
        62: _ACTION,  # BrokerRegistration
        63: _ACTION,  # BrokerHeartbeat
        64: _ALTER,  # UnregisterBroker
        67: _ACTION,  # AllocateProducerIds
        70: _ACTION,  # ControllerRegistration
        73: _ACTION,  # AssignReplicasToDirs
        80: _ALTER,  # AddRaftVoter
        81: _ALTER,  # RemoveRaftVoter
        82: _ACTION,  # UpdateRaftVoter
    }
)
"""What a request to a controller needs on the cluster, by API key.

DescribeCluster is missing: what it needs is looked at after the metadata.version.
"""

ON_BROKER: Final[Mapping[int, AclOperation]] = MappingProxyType(
    {
        29: _DESCRIBE,  # DescribeAcls
        35: _DESCRIBE,  # DescribeLogDirs
        48: _DESCRIBE_CONFIGS,  # DescribeClientQuotas
        50: _DESCRIBE,  # DescribeUserScramCredentials
        74: _DESCRIBE_CONFIGS,  # ListConfigResources
    }
)
"""What a request to a broker needs on the cluster, by API key; the controller looks at others."""


class Authorizer:
    """Tells what a client may do, by the committed access control entries."""

    def __init__(
        self, rules: AuthorizerRules | None, *, loader: MetadataLoader, raft: RaftNode
    ) -> None:
        self._rules = rules
        self._loader = loader
        self._raft = raft
        self._is_loaded = False

    def access(self, principal: Principal, host: str) -> Access:
        """Return what `principal` may do from `host`, by the entries of this moment."""
        if self._rules is None:
            return UNRESTRICTED
        acls = self._loader.published.acls if self._has_loaded() else None
        return Access(self._rules, acls, principal, host_text(host))

    def _has_loaded(self) -> bool:
        """Tell whether the entries are known as far as the log was committed at the start."""
        if not self._is_loaded:
            end_offset = self._raft.high_watermark
            self._is_loaded = (
                end_offset is not None and self._loader.published_offset + 1 >= end_offset
            )
        return self._is_loaded
