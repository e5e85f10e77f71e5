"""The identity of an embedded cluster, in a file of its folder."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvorum.metadata.address import Address
from kvorum.node.config import load_properties
from kvorum.node.embedded.client_security.mode import SecurityMode
from kvorum.node.errors import NodeStartError
from kvorum.node.format.dynamic_voters import DynamicVoter, parse_dynamic_voters, voters_by_id
from kvorum.storage.files import RealFileSystem, disk_errors, replace_durably
from kvorum.storage.small_files.java_properties import store_java_properties
from kvorum.wire.uuid_text import random_uuid, uuid_to_text

IDENTITY_FILE: Final = "cluster.properties"
_CLUSTER_ID: Final = "cluster.id"
_CONTROLLERS: Final = "initial.controllers"
_BROKERS: Final = "brokers"
_SECURITY: Final = "security"
_COMMENT: Final = (
    "A cluster of embedded nodes of kvorum; each node's own settings are in its folder."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIdentity:
    """A cluster's id, its first voters, its number of brokers, and the security of its clients.

    An interrupted first start is repeated with the same identity: no two controllers may be
    formatted with different voters.
    """

    cluster_id: str
    voters: Mapping[int, DynamicVoter]
    broker_count: int
    security: SecurityMode | None = None


def new_identity(
    controllers: Mapping[int, Address], *, broker_count: int, security: SecurityMode | None = None
) -> ClusterIdentity:
    """Return an identity with random ids for a cluster whose controllers have these addresses."""
    source = random.SystemRandom()
    voters = voters_by_id(
        DynamicVoter(node_id, address.host, address.port, random_uuid(source))
        for node_id, address in controllers.items()
    )
    cluster_id = uuid_to_text(random_uuid(source))
    return ClusterIdentity(
        cluster_id=cluster_id, voters=voters, broker_count=broker_count, security=security
    )


def load_identity(folder: Path) -> ClusterIdentity | None:
    """Return the identity of the cluster in a folder, None without one yet.

    Raises NodeStartError if the file is damaged.
    """
    file = folder / IDENTITY_FILE
    if not file.exists():
        return None
    properties = load_properties(file)
    try:
        return ClusterIdentity(
            cluster_id=properties[_CLUSTER_ID],
            voters=parse_dynamic_voters(properties[_CONTROLLERS]),
            broker_count=int(properties[_BROKERS]),
            security=SecurityMode(properties[_SECURITY]) if _SECURITY in properties else None,
        )
    except (KeyError, ValueError) as error:
        raise NodeStartError(f"{file} does not describe a cluster: {error}") from error


def store_identity(folder: Path, identity: ClusterIdentity) -> None:
    """Write the identity durably. Raises StorageError."""
    properties = {
        _CLUSTER_ID: identity.cluster_id,
        _CONTROLLERS: ",".join(str(voter) for voter in identity.voters.values()),
        _BROKERS: str(identity.broker_count),
    }
    if identity.security is not None:
        properties[_SECURITY] = identity.security
    files = RealFileSystem()
    with disk_errors(folder, "creating"):
        files.make_directory(folder)
    text = store_java_properties(properties.items(), comments=[_COMMENT])
    replace_durably(files, folder / IDENTITY_FILE, text.encode("latin-1"))
