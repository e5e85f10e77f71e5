"""The tree that kafka-metadata-shell shows for a metadata image.

Its nodes are directories, whose content is computed on access, and files, with values in the text
form of Kafka's own classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from kvorum.inspection.folded_log import Provenance
from kvorum.inspection.utc_text import utc_text
from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.acls_image import AccessControlEntry
from kvorum.metadata.cluster_image import (
    BrokerRegistration,
    ClusterImage,
    ControllerRegistration,
    Endpoint,
)
from kvorum.metadata.configs_image import (
    CLIENT_ID,
    IP,
    USER,
    ClientQuotasImage,
    ConfigResource,
    QuotaEntity,
    ResourceType,
)
from kvorum.metadata.credentials_image import (
    DelegationToken,
    DelegationTokensImage,
    ScramCredential,
    ScramImage,
    ScramMechanism,
)
from kvorum.metadata.features import FeaturesImage, VersionRange
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.java_order import in_java_order
from kvorum.metadata.partition import RECOVERED, PartitionRegistration
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.wire.java_text import java_double_text, parse_java_integer
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

_INDENTATION: Final = "  "
_NO_UPPER_BOUND: Final = 0x7FFF
_SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_Key = TypeVar("_Key")
_Item = TypeVar("_Item")
_FINALIZED: Final = "finalized_"

_ENTITY_TYPES: Final = MappingProxyType({"clientId": CLIENT_ID, "ip": IP, "user": USER})
"""The types by their names in the shell."""
_ENTITY_PART: Final = re.compile(r"(clientId|ip|user)\(((?:[^)\\]|\\.)*)\)", re.DOTALL)
"""A type with its name in brackets, in which a backslash takes the next character as it is."""
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory whose content is computed on access.

    `names` may contain a name twice; `child` returns None for a name without a node, and may know
    names that `names` does not list. `kind` is how Kafka's messages name the directory.
    """

    names: Callable[[], Collection[str]]
    child: Callable[[str], Node | None]
    kind: str = ""

    def sorted_names(self) -> list[str]:
        """Return the names in the order of the shell."""
        return sorted(self.names(), key=in_java_order)


Node: TypeAlias = Directory | str
"""A directory, or the text in a file."""


class DanglingNameError(Exception):
    """A directory lists a name for which it has no node; `place` is its path or its kind."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__(f"Expected {name} to be a valid child of {place}, but it was not.")


def tree_lines(node: Node, depth: int = 0) -> Iterator[str]:
    """Yield the output of the shell's ``tree`` for a directory, and of its ``cat`` for a file."""
    if isinstance(node, str):
        yield f"{_INDENTATION * depth}{node}"
        return
    for name in node.sorted_names():
        yield f"{_INDENTATION * depth}{name}:"
        child = node.child(name)
        if child is not None:
            yield from tree_lines(child, depth + 1)


def find_lines(node: Node, path: str) -> Iterator[str]:
    """Yield the output of the shell's ``find``; `DanglingNameError` for a name without a node."""
    yield path
    if isinstance(node, str):
        return
    for name in node.sorted_names():
        child = node.child(name)
        if child is None:
            raise DanglingNameError(name, path)
        yield from find_lines(child, f"{path}{name}" if path == "/" else f"{path}/{name}")


def optional_text(value: object) -> str:
    """Return the text of a value that may be missing, as Java's Optional prints it."""
    return "Optional.empty" if value is None else f"Optional[{value}]"


def time_text(timestamp_ms: int) -> str:
    """Return a time as Java prints one of the zone UTC."""
    return f"{utc_text(timestamp_ms)}[UTC]"


def broker_text(broker: BrokerRegistration) -> str:
    """Return the text of a registered broker."""
    cordoned = broker.cordoned_directories
    return (
        f"BrokerRegistration(id={broker.id}, epoch={broker.epoch}, "
        f"incarnationId={uuid_to_text(broker.incarnation_id)}, "
        f"listeners={_listeners(broker.listeners)}, "
        f"supportedFeatures={_supported(broker.supported_features)}, "
        f"rack={optional_text(broker.rack)}, fenced={_truth(broker.is_fenced)}, "
        f"inControlledShutdown={_truth(broker.is_in_controlled_shutdown)}, "
        f"isMigratingZkBroker={_truth(broker.is_migrating_zk_broker)}, "
        f"directories={_ids(broker.directories)}, "
        f"cordonedDirectories={'null' if cordoned is None else _ids(cordoned)})"
    )


def controller_text(controller: ControllerRegistration) -> str:
    """Return the text of a registered controller."""
    return (
        f"ControllerRegistration(id={controller.id}, "
        f"incarnationId={uuid_to_text(controller.incarnation_id)}, "
        f"zkMigrationReady={_truth(controller.is_zk_migration_ready)}, "
        f"listeners={_listeners(controller.listeners)}, "
        f"supportedFeatures={_supported(controller.supported_features)})"
    )


def partition_text(partition: PartitionRegistration) -> str:
    """Return the text of a partition."""
    recovery = "RECOVERED" if partition.leader_recovery_state == RECOVERED else "RECOVERING"
    return (
        f"PartitionRegistration(replicas={list(partition.replicas)}, "
        f"directories={_ids(partition.directories)}, isr={list(partition.isr)}, "
        f"removingReplicas={list(partition.removing_replicas)}, "
        f"addingReplicas={list(partition.adding_replicas)}, elr={list(partition.elr)}, "
        f"lastKnownElr={list(partition.last_known_elr)}, leader={partition.leader}, "
        f"leaderRecoveryState={recovery}, leaderEpoch={partition.leader_epoch}, "
        f"partitionEpoch={partition.partition_epoch})"
    )


def acl_text(entry: AccessControlEntry) -> str:
    """Return the text of an access control entry."""
    return (
        f"StandardAcl[resourceType={AclResourceType(entry.resource_type).name}, "
        f"resourceName={entry.resource_name}, "
        f"patternType={PatternType(entry.pattern_type).name}, principal={entry.principal}, "
        f"host={entry.host}, operation={AclOperation(entry.operation).name}, "
        f"permissionType={PermissionType(entry.permission_type).name}]"
    )


def scram_text(credential: ScramCredential) -> str:
    """Return the text of a credential, with its keys in full."""
    return (
        f"ScramCredentialData(salt={credential.salt.hex()}, "
        f"storedKey={credential.stored_key.hex()}, serverKey={credential.server_key.hex()}, "
        f"iterations={credential.iterations})"
    )


def token_text(token_id: str, token: DelegationToken) -> str:
    """Return the text of a delegation token; Kafka's brackets do not match either."""
    return (
        f"DelegationTokenDatatokenId={token_id}(owner={token.owner}"
        f"(tokenRequester={token.requester}(renewers={' '.join(token.renewers)}, "
        f"issueTimestamp={token.issue_timestamp_ms}, maxTimestamp={token.max_timestamp_ms}), "
        f"expiryTimestamp={token.expiration_timestamp_ms}"
    )


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _ids(ids: Iterable[bytes]) -> str:
    return f"[{', '.join(map(uuid_to_text, ids))}]"


def _listeners(listeners: Iterable[Endpoint]) -> str:
    ordered = sorted(listeners, key=lambda endpoint: in_java_order(endpoint.listener))
    return f"[{', '.join(map(_endpoint, ordered))}]"


def _endpoint(endpoint: Endpoint) -> str:
    known = 0 <= endpoint.security_protocol < len(_SECURITY_PROTOCOLS)
    protocol = _SECURITY_PROTOCOLS[endpoint.security_protocol] if known else "null"
    return (
        f"Endpoint(listenerName='{endpoint.listener}', securityProtocol={protocol}, "
        f"host='{endpoint.host}', port={endpoint.port})"
    )


def _supported(features: Mapping[str, VersionRange]) -> str:
    names = sorted(features, key=in_java_order)
    return f"{{{', '.join(f'{name}: {_range(features[name])}' for name in names)}}}"


def _range(levels: VersionRange) -> str:
    if levels.max == _NO_UPPER_BOUND and levels.min != levels.max:
        return f"{levels.min}+"
    return str(levels)


@dataclass(frozen=True, slots=True)
class Software:
    """The version and commit of the program that shows the tree."""

    version: str
    commit_id: str


def shell_tree(image: MetadataImage, provenance: Provenance, software: Software) -> Directory:
    """Return the root directory of the shell."""
    local = {"version": software.version, "commitId": software.commit_id}
    return _fixed({"local": _fixed(local), "image": _image(image, provenance)})


def _fixed(content: Mapping[str, Node]) -> Directory:
    return Directory(lambda: content, content.get)


def _image(image: MetadataImage, provenance: Provenance) -> Directory:
    return _fixed(
        {
            "provenance": (
                f"offset {provenance.offset}, epoch {provenance.epoch}, "
                f"time {time_text(provenance.timestamp_ms)}"
            ),
            "features": _features(image.features),
            "cluster": _cluster(image.cluster),
            "topics": _topics(image.topics),
            "configs": _mapped(image.configs.resources, _resource_name, _resource, _fixed),
            "clientQuotas": _client_quotas(image.client_quotas),
            "producerIds": _fixed({"nextProducerId": str(image.next_producer_id)}),
            "acls": _fixed({"byId": _mapped(image.acls.entries, uuid_to_text, _id_in, acl_text)}),
            "scram": _scram(image.scram),
            "delegationToken": _delegation_tokens(image.delegation_tokens),
        }
    )


def _features(image: FeaturesImage) -> Directory:
    version = image.metadata_version
    levels = {f"{_FINALIZED}{name}": str(level) for name, level in image.levels.items()}
    text = optional_text(None if version is None else version.text)
    files: dict[str, Node] = {"metadataVersion": text, **levels}

    def child(name: str) -> Node | None:
        # A feature that is not finalized is not listed, and has level 0.
        return files.get(name, "0" if name.startswith(_FINALIZED) else None)

    return Directory(lambda: files, child)


def _mapped(
    items: Mapping[_Key, _Item],
    name_of: Callable[[_Key], str],
    key_in: Callable[[str], _Key | None],
    node_of: Callable[[_Item], Node],
    kind: str = "",
) -> Directory:
    """Return a directory with a node for each item; `key_in` returns None for a malformed name."""

    def child(name: str) -> Node | None:
        key = key_in(name)
        item = None if key is None else items.get(key)
        return None if item is None else node_of(item)

    return Directory(lambda: [name_of(key) for key in items], child, kind)


def _cluster(image: ClusterImage) -> Directory:
    return _fixed(
        {
            "brokers": _mapped(image.brokers, str, _number_in, broker_text),
            "controllers": _mapped(image.controllers, str, _number_in, controller_text),
        }
    )


def _number_in(name: str) -> int | None:
    """Return the number that a name spells: a sign and zeros before it do no harm."""
    try:
        return parse_java_integer(name, bits=32)
    except ValueError:
        return None


def _topics(image: TopicsImage) -> Directory:
    def by_name(name: str) -> Node | None:
        topic = image.by_name(name)
        return None if topic is None else _topic(topic)

    return _fixed(
        {
            "byName": Directory(lambda: image.ids, by_name),
            "byId": _mapped(image.by_id, uuid_to_text, _id_in, _topic),
        }
    )


def _id_in(text: str) -> bytes | None:
    """Return the id that a name encodes; None if malformed."""
    try:
        return uuid_from_text(text)
    except ValueError:
        return None


def _topic(topic: TopicImage) -> Directory:
    def names() -> list[str]:
        return ["name", "id", *map(str, topic.partitions)]

    def child(name: str) -> Node | None:
        if name == "name":
            return topic.name
        if name == "id":
            return uuid_to_text(topic.id)
        number = _number_in(name)
        partition = None if number is None else topic.partitions.get(number)
        return None if partition is None else partition_text(partition)

    return Directory(names, child)


def _resource_name(resource: ConfigResource) -> str:
    kind, name = resource
    return f"{ResourceType(kind).name}:{name}" if name else ResourceType(kind).name


def _resource(text: str) -> ConfigResource | None:
    """Return the resource that a name is of; a default may be written with the colon too."""
    kind, _, name = text.partition(":")
    return (ResourceType[kind], name) if kind in ResourceType.__members__ else None


def _client_quotas(image: ClientQuotasImage) -> Directory:
    """Return the directory of quotas, where names of entities with defaults are ambiguous.

    A default has no name, so it is left out of the directory's name. A name may therefore be listed
    twice; it leads to the entity without any default, or to no node.
    """

    def node(values: Mapping[str, float]) -> Directory:
        return _fixed({key: java_double_text(value) for key, value in values.items()})

    kind = "class org.apache.kafka.image.node.ClientQuotasImageNode"
    return _mapped(image.entities, _entity_name, _entity, node, kind)


def _entity_name(entity: QuotaEntity) -> str:
    parts = dict(entity)
    named = ((label, parts.get(kind)) for label, kind in _ENTITY_TYPES.items())
    return "_".join(f"{label}({escaped_name(name)})" for label, name in named if name is not None)


def escaped_name(name: str) -> str:
    """Return a name of a quota's entity with its brackets and backslashes escaped."""
    return name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _entity(text: str) -> QuotaEntity | None:
    """Return the entity that a name is of, its parts in any order; None for other text."""
    parts: dict[str, str | None] = {}
    place = 0
    while (match := _ENTITY_PART.match(text, place)) is not None:
        label, name = match.groups()
        parts[_ENTITY_TYPES[label]] = _ESCAPED.sub(r"\1", name)
        if match.end() == len(text):
            return tuple(sorted(parts.items()))
        if text[match.end()] != "_":
            return None
        place = match.end() + 1
    return None


def _scram(image: ScramImage) -> Directory:
    users: dict[int, dict[str, Node]] = {
        mechanism: {} for mechanism in ScramMechanism if mechanism is not ScramMechanism.UNKNOWN
    }
    for (mechanism, user), credential in image.credentials.items():
        if mechanism in users:
            users[mechanism][user] = scram_text(credential)
    return _fixed(
        {
            ScramMechanism(mechanism).name.replace("_", "-"): _fixed(files)
            for mechanism, files in users.items()
        }
    )


def _delegation_tokens(image: DelegationTokensImage) -> Directory:
    def child(name: str) -> Node | None:
        token = image.tokens.get(name)
        return None if token is None else token_text(name, token)

    return Directory(lambda: image.tokens, child)
