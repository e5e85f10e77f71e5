"""The tree that kafka-metadata-shell shows for a metadata image."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from kvorum.inspection.metadata_log.folding import Provenance
from kvorum.inspection.shell.node import Directory, Node
from kvorum.inspection.shell.node_text import (
    acl_text,
    broker_text,
    controller_text,
    optional_text,
    partition_text,
    scram_text,
    time_text,
    token_text,
)
from kvorum.metadata.client_quotas_image import CLIENT_ID, IP, USER, ClientQuotasImage, QuotaEntity
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.config_definitions.java_text import parse_java_integer
from kvorum.metadata.configs_image import ConfigResource, ResourceType
from kvorum.metadata.delegation_tokens_image import DelegationTokensImage
from kvorum.metadata.features_image import FeaturesImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.java_text import java_double_text
from kvorum.metadata.scram_image import ScramImage, ScramMechanism
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")
_FINALIZED: Final = "finalized_"


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


_ENTITY_TYPES: Final = MappingProxyType({"clientId": CLIENT_ID, "ip": IP, "user": USER})
"""The types by their names in the shell."""
_ENTITY_PART: Final = re.compile(r"(clientId|ip|user)\(((?:[^)\\]|\\.)*)\)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


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
