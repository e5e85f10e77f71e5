"""The controller role of a node, put together: Kafka's ControllerServer."""

from collections.abc import Mapping
from types import MappingProxyType

from kvorum.controller.controller_mutation_quota import MutationQuotas
from kvorum.controller.settings import ControllerSettings
from kvorum.metadata.delegation_tokens import TokenSecrets
from kvorum.metadata.standard_authorizer import Principal
from kvorum.node.authorization import Authorizer
from kvorum.node.controller.controller_registration_manager import ControllerRegistrationManager
from kvorum.node.controller.periodic_task_control_manager import controller_tasks
from kvorum.node.controller.policies import NodePolicies, load_policies
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.controller.quorum_reassignment_manager import QuorumReassignmentManager
from kvorum.node.coroutines import ClosableTasks
from kvorum.node.handlers.registry import controller_apis
from kvorum.node.metadata_events import MetadataEvents
from kvorum.node.services import ControllerServices
from kvorum.node.serving.request_handler import RequestHandler
from kvorum.node.serving.session import Session
from kvorum.node.serving.socket_server import SocketServer
from kvorum.node.shared_server import SharedServer
from kvorum.node.tasks import run
from kvorum.wire.uuid_text import random_uuid

REGISTRATION_TIMEOUT_MS = 5_000
ACTIVATION_MS_MAX = 1_000


class ControllerServer:
    """The controller role: the controller, its listeners, periodic tasks and registration."""

    def __init__(self, shared: SharedServer) -> None:
        self._shared = shared
        self._policies = load_policies(shared.config)
        self.controller = QuorumController(
            _settings(shared, self._policies),
            shared.directories.bootstrap,
            raft=shared.raft,
            loader=shared.loader,
            runtime=shared.runtime,
            random=shared.random,
            mutation_quotas=shared.config.read(MutationQuotas),
        )
        shared.log_listener.register(self.controller)
        MetadataEvents(shared.loader, shared.raft)
        self._tasks = controller_tasks(self.controller, shared.config, shared.runtime)
        self.reassignment = QuorumReassignmentManager(
            self.controller,
            raft=shared.raft,
            loader=shared.loader,
            images=shared.images,
            runtime=shared.runtime,
            outgoing=shared.to_controllers,
        )
        apis = controller_apis()
        authorizer = Authorizer(
            shared.config.security.authorizer, loader=shared.loader, raft=shared.raft
        )
        self._services = ControllerServices(
            config=shared.config,
            cluster_id=shared.directories.cluster_id,
            runtime=shared.runtime,
            request_metrics=shared.request_metrics,
            raft=shared.raft,
            loader=shared.loader,
            quorum_controller=self.controller,
            reassignment=self.reassignment,
            served=MappingProxyType(
                {key: (api.min_listed, api.max_version) for key, api in apis.items()}
            ),
            give_access=authorizer.access,
        )
        dispatcher = RequestHandler(
            apis,
            self._services,
            authorizer.access,
            clock=shared.clock,
            metrics=shared.request_metrics,
        )
        self._servers = {
            listener.name: shared.server(listener, dispatcher)
            for listener in shared.config.listeners.controllers
        }
        self._registrar = ControllerRegistrationManager(
            node_id=shared.config.node_id,
            incarnation_id=random_uuid(shared.random),
            listeners=shared.controller_endpoints,
            supported_features=shared.supported_features,
            channel=shared.channel("registration", timeout_ms=REGISTRATION_TIMEOUT_MS),
            images=shared.images,
            runtime=shared.runtime,
        )
        self._warming = ClosableTasks()

    @property
    def socket_servers(self) -> Mapping[str, SocketServer]:
        """The servers of this role's listeners, by name."""
        return self._servers

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller."""
        return self.controller.is_active

    async def answer_forwarded(self, frame: bytes, principal: Principal, host: str) -> bytes:
        """Answer a request of this node's own broker, as `envelope.answer_forwarded` does."""
        # Imported here: nothing is forwarded while a node starts.
        from kvorum.node.handlers.envelope import answer_forwarded  # noqa: PLC0415 - see above

        listener = self._shared.config.listeners.controllers[0]
        session = Session(listener.name, listener.protocol, host, principal, is_forwarded=True)
        return await answer_forwarded(frame, session, self._services)

    async def start(self) -> None:
        """Accept requests; the log must be open.

        A lone voter leads already and will be active in a moment: this method waits for it, so
        that the first requests of the node's own broker are not refused.
        """
        for name, server in self._servers.items():
            await server.start(self._shared.sockets[name])
        self._tasks.start()
        self.reassignment.start()
        if not self._shared.raft.is_leader:
            # One of several voters, which may have to take over; a lone voter leads already.
            from kvorum.node.warm_up import warm_up  # noqa: PLC0415 - not for a lone voter

            self._warming.start(warm_up(self._shared.runtime))
        if self._shared.raft.is_leader:
            await run(self.controller.wait_until_active(ACTIVATION_MS_MAX))
        self._registrar.start()

    def begin_stop(self) -> None:
        """Stop the periodic tasks and the registration; requests are still answered."""
        self._warming.close()
        self._registrar.close()
        self.reassignment.close()
        self._tasks.close()

    async def stop(self) -> None:
        """Refuse the requests that wait and close every connection."""
        self.controller.close()
        for server in self._servers.values():
            await server.stop()
        self._policies.close()


def _settings(shared: SharedServer, policies: NodePolicies) -> ControllerSettings:
    config = shared.config
    return config.read(
        ControllerSettings,
        cluster_id=shared.directories.cluster_id,
        quorum_voter_ids=tuple(voter.node_id for voter in config.quorum.voters),
        supported_features=shared.supported_features,
        static_configs=config.texts,
        create_topic_policy=policies.create_topic,
        alter_config_policy=policies.alter_config,
        token_secrets=TokenSecrets(config.security.tokens),
    )
