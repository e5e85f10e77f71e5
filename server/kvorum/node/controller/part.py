"""The controller role of a node, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

from kvorum.controller.mutation_quota import MutationQuotas
from kvorum.controller.settings import ControllerSettings
from kvorum.metadata.delegation_tokens import TokenSecrets
from kvorum.node.authorization import Authorizer
from kvorum.node.controller.policies import NodePolicies, load_policies
from kvorum.node.controller.registration import ControllerRegistrar
from kvorum.node.controller.shell import ControllerShell
from kvorum.node.controller.tasks import controller_tasks
from kvorum.node.controller.warm_up import warm_up
from kvorum.node.core import NodeCore
from kvorum.node.events.metadata_events import MetadataEvents
from kvorum.node.handlers.registry import controller_apis
from kvorum.node.services import ControllerServices
from kvorum.node.serving.dispatch import Dispatcher
from kvorum.wire.uuid_text import random_uuid

REGISTRATION_TIMEOUT_MS = 5_000
ACTIVATION_SECONDS_MAX = 1.0


class ControllerPart:
    """Controller, its listeners, what it does by the clock, and its own registration."""

    def __init__(self, core: NodeCore) -> None:
        self._core = core
        self._policies = load_policies(core.config)
        self._shell = ControllerShell(
            _settings(core, self._policies),
            core.directories.bootstrap,
            raft=core.raft,
            loader=core.loader,
            clock=core.clock,
            random=core.random,
            mutation_quotas=MutationQuotas(
                window_count=core.config.mutation_quota.window_count,
                window_seconds=core.config.mutation_quota.window_seconds,
            ),
        )
        core.follower.shell = self._shell
        MetadataEvents(core.loader, core.raft)
        self._tasks = controller_tasks(self._shell, core.config)
        apis = controller_apis()
        services = ControllerServices(
            config=core.config,
            cluster_id=core.directories.cluster_id,
            raft=core.raft,
            loader=core.loader,
            shell=self._shell,
            served=MappingProxyType(
                {key: (api.min_listed, api.max_version) for key, api in apis.items()}
            ),
        )
        authorizer = Authorizer(core.config.security.authorizer, loader=core.loader, raft=core.raft)
        services.dispatcher = Dispatcher(apis, services, authorizer.access)
        self._servers = {
            listener.name: core.server(listener.name, services.dispatcher)
            for listener in core.config.listeners.controllers
        }
        self._registrar = ControllerRegistrar(
            node_id=core.config.node_id,
            incarnation_id=random_uuid(core.random),
            listeners=core.controller_endpoints,
            supported_features=core.supported_features,
            channel=core.channel("registration", timeout_ms=REGISTRATION_TIMEOUT_MS),
            loader=core.loader,
        )
        self._warming: asyncio.Task[None] | None = None

    @property
    def is_active(self) -> bool:
        """Whether this is the active controller."""
        return self._shell.is_active

    @property
    def shell(self) -> ControllerShell:
        """The controller itself."""
        return self._shell

    def connection_counts(self) -> Mapping[str, int]:
        """Return how many connections are open, by listener."""
        return {name: server.connection_count for name, server in self._servers.items()}

    async def wait_until_active(self) -> None:
        """Return once this is the active controller."""
        await self._shell.wait_until_active()

    async def start(self) -> None:
        """Take requests; the log must be open.

        A lone voter leads already and will be active in a moment: it is waited for, so that the
        first requests of the own broker are not refused.
        """
        for name, server in self._servers.items():
            await server.start(self._core.sockets[name])
        self._tasks.start()
        if not self._core.raft.is_leader:
            # One of several, which may have to take over; a lone voter leads already.
            self._warming = asyncio.create_task(warm_up())
        if self._core.raft.is_leader:
            with suppress(TimeoutError):
                async with asyncio.timeout(ACTIVATION_SECONDS_MAX):
                    await self._shell.wait_until_active()
        self._registrar.start()

    async def begin_stop(self) -> None:
        """Stop what the controller does of itself; requests are still answered."""
        if self._warming is not None:
            self._warming.cancel()
        await self._registrar.close()
        await self._tasks.close()

    async def stop(self) -> None:
        """Refuse what waits and close every connection."""
        self._shell.close()
        for server in self._servers.values():
            await server.stop()
        self._policies.close()


def _settings(core: NodeCore, policies: NodePolicies) -> ControllerSettings:
    config = core.config
    return ControllerSettings(
        node_id=config.node_id,
        cluster_id=core.directories.cluster_id,
        quorum_voter_ids=tuple(voter.node_id for voter in config.quorum.voters),
        partitions_default=config.topics.partitions_default,
        replication_factor_default=config.topics.replication_factor_default,
        is_topic_deletion_enabled=config.topics.is_delete_enabled,
        session_timeout_ms=config.broker.session_timeout_ms,
        supported_features=core.supported_features,
        static_configs=config.texts,
        create_topic_policy=policies.create_topic,
        alter_config_policy=policies.alter_config,
        token_secrets=TokenSecrets(config.security.tokens),
    )
