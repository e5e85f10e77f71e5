"""The started parts of a server: the shared ones, and the roles."""

from dataclasses import dataclass

from kvorum.node.broker_server import BrokerServer
from kvorum.node.controller_server import ControllerServer
from kvorum.node.metadata_loader import SnapshotGenerator
from kvorum.node.shared_server import SharedServer


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRoles:
    """The started parts, the log among them; a missing or not yet started role is None."""

    shared: SharedServer
    snapshots: SnapshotGenerator
    controller: ControllerServer | None = None
    broker: BrokerServer | None = None
