"""The configuration of a controller, and the context of each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from kvorum.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kvorum.controller.controller_mutation_quota import MutationQuota
from kvorum.controller.policies import AlterConfigPolicy, CreateTopicPolicy
from kvorum.controller.quorum_description import NO_QUORUM, QuorumDescription
from kvorum.metadata.delegation_tokens import TokenSecrets, TokenSettings
from kvorum.metadata.features import VersionRange, supported_features
from kvorum.metadata.standard_authorizer import Access, Principal

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The parts of a node's configuration that the controller uses.

    `static_configs` are the explicit values of the properties file: they apply where a dynamic
    value is not set. `quorum_voter_ids` are the ids of ``controller.quorum.voters``, empty for a
    dynamic quorum. The policies are the operator's own rules, or None.
    `token_secrets` are the cluster's settings of delegation tokens, with their secrets.
    """

    node_id: Annotated[int, "node.id"]
    cluster_id: str
    quorum_voter_ids: tuple[int, ...] = ()
    partitions_default: Annotated[int, "num.partitions"] = 1
    replication_factor_default: Annotated[int, "default.replication.factor"] = 1
    is_topic_deletion_enabled: Annotated[bool, "delete.topic.enable"] = True
    session_timeout_ms: Annotated[int, "broker.session.timeout.ms"] = 9_000
    elections_per_run_max: int = 1_000
    supported_features: Mapping[str, VersionRange] = field(
        default_factory=lambda: MappingProxyType(supported_features())
    )
    static_configs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    create_topic_policy: CreateTopicPolicy | None = None
    alter_config_policy: AlterConfigPolicy | None = None
    token_secrets: TokenSecrets = field(default_factory=lambda: TokenSecrets(TokenSettings()))


@dataclass(frozen=True, slots=True)
class ControllerRequestContext:
    """The context of one call besides the image: time, random source, log position and client.

    `now_ms` is monotonic; `next_offset` is the offset that the first record of the result will
    have; `kraft_version` and `leader_id` are the quorum's; `listener` is where the request
    arrived. `is_forwarded` is true for a request that a broker forwarded in an Envelope.
    `describe_quorum` returns what the leader knows of its replicas.
    `kraft_upgrade_problem` returns why the quorum cannot go to a kraft.version, or None if it can.
    `mutation_quota` limits the partitions that the client creates and deletes; None is not a limit.
    `access` has the permissions of `principal`, the client. `wall_clock_ms` are milliseconds since
    1970.
    """

    settings: ControllerSettings
    sessions: BrokerHeartbeatManager
    random: Random
    now_ms: float
    next_offset: int
    access: Access
    principal: Principal
    api_version: int = 0
    listener: str = ""
    is_forwarded: bool = False
    kraft_version: int = 0
    leader_id: int = -1
    describe_quorum: Callable[[], QuorumDescription] = lambda: NO_QUORUM
    kraft_upgrade_problem: Callable[[int], str | None] = lambda _: None
    mutation_quota: MutationQuota | None = None
    wall_clock_ms: int = 0

    def record_mutations(self, partitions: int) -> None:
        """Charge created or deleted `partitions`; raise `RequestError` 89 beyond the quota."""
        if self.mutation_quota is not None:
            self.mutation_quota.record(partitions, int(self.now_ms))
