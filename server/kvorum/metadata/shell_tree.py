"""A library for users: the tree that kafka-metadata-shell shows for a metadata image."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kvorum.metadata.acls_image import AclsImage
from kvorum.metadata.client_quotas_image import ClientQuotasImage, QuotaEntity
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.config_definitions.java_text import java_double_text
from kvorum.metadata.configs_image import ConfigResource, ConfigsImage, ResourceType
from kvorum.metadata.delegation_tokens_image import DelegationTokensImage
from kvorum.metadata.features_image import FeaturesImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.scram_image import ScramImage, ScramMechanism
from kvorum.metadata.shell_text import (
    acl_text,
    broker_text,
    controller_text,
    in_java_order,
    optional_text,
    partition_text,
    scram_text,
    time_text,
    token_text,
)
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

_INDENTATION: Final = "  "


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory whose content is computed on access.

    `names` may contain a name twice; `child` returns None for a name without a node.
    """

    names: Callable[[], Collection[str]]
    child: Callable[[str], Node | None]

    def sorted_names(self) -> list[str]:
        """Return the names in the order of the shell."""
        return sorted(self.names(), key=in_java_order)


Node: TypeAlias = Directory | str
"""A directory, or the text in a file."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The last offset, epoch and time that an image contains."""

    offset: int
    epoch: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Software:
    """The version and commit of the program that shows the tree."""

    version: str
    commit_id: str


class DanglingNameError(Exception):
    """A directory lists a name for which it has no node."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(f"Expected {name} to be a valid child of {path}, but it was not.")


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
            "configs": _configs(image.configs),
            "clientQuotas": _client_quotas(image.client_quotas),
            "producerIds": _fixed({"nextProducerId": str(image.next_producer_id)}),
            "acls": _fixed({"byId": _acls(image.acls)}),
            "scram": _scram(image.scram),
            "delegationToken": _delegation_tokens(image.delegation_tokens),
        }
    )


def _features(image: FeaturesImage) -> Directory:
    version = image.metadata_version
    levels = {f"finalized_{name}": str(level) for name, level in image.levels.items()}
    text = optional_text(None if version is None else version.text)
    return _fixed({"metadataVersion": text, **levels})


def _cluster(image: ClusterImage) -> Directory:
    brokers, controllers = image.brokers, image.controllers
    return _fixed(
        {
            "brokers": _by_number(brokers, lambda number: broker_text(brokers[number])),
            "controllers": _by_number(
                controllers, lambda number: controller_text(controllers[number])
            ),
        }
    )


def _by_number(numbers: Collection[int], text: Callable[[int], str]) -> Directory:
    """Return a directory of files whose names are numbers."""

    def child(name: str) -> Node | None:
        return text(int(name)) if name.isdecimal() and int(name) in numbers else None

    return Directory(lambda: [str(number) for number in numbers], child)


def _topics(image: TopicsImage) -> Directory:
    def by_name(name: str) -> Node | None:
        topic = image.by_name(name)
        return None if topic is None else _topic(topic)

    def by_id(text: str) -> Node | None:
        topic = image.by_id.get(_id_in(text))
        return None if topic is None else _topic(topic)

    def ids() -> list[str]:
        return [uuid_to_text(topic_id) for topic_id in image.by_id]

    return _fixed({"byName": Directory(lambda: image.ids, by_name), "byId": Directory(ids, by_id)})


def _id_in(text: str) -> bytes:
    """Return the id that a name encodes; the empty id, which matches nothing, if malformed."""
    try:
        return uuid_from_text(text)
    except ValueError:
        return b""


def _topic(topic: TopicImage) -> Directory:
    def names() -> list[str]:
        return ["name", "id", *map(str, topic.partitions)]

    def child(name: str) -> Node | None:
        if name == "name":
            return topic.name
        if name == "id":
            return uuid_to_text(topic.id)
        partition = topic.partitions.get(int(name)) if name.isdecimal() else None
        return None if partition is None else partition_text(partition)

    return Directory(names, child)


def _configs(image: ConfigsImage) -> Directory:
    resources = {_resource_name(resource): resource for resource in image.resources}

    def child(name: str) -> Node | None:
        return _fixed(image.resources[resources[name]]) if name in resources else None

    return Directory(lambda: resources, child)


def _resource_name(resource: ConfigResource) -> str:
    kind, name = resource
    return f"{ResourceType(kind).name}:{name}" if name else ResourceType(kind).name


def _client_quotas(image: ClientQuotasImage) -> Directory:
    """Return the directory of quotas, where names of entities with defaults are ambiguous.

    A default has no name, so it is left out of the directory's name. A name may therefore be listed
    twice; it leads to the entity without any default, or to no node.
    """
    named = {
        _entity_name(entity): entity
        for entity in image.entities
        if all(name is not None for _, name in entity)
    }

    def child(name: str) -> Node | None:
        if name not in named:
            return None
        values = image.entities[named[name]]
        return _fixed({key: java_double_text(value) for key, value in values.items()})

    return Directory(lambda: [_entity_name(entity) for entity in image.entities], child)


_ENTITY_TYPES: Final = (("client-id", "clientId"), ("ip", "ip"), ("user", "user"))


def _entity_name(entity: QuotaEntity) -> str:
    parts = dict(entity)
    named = ((label, parts.get(kind)) for kind, label in _ENTITY_TYPES)
    return "_".join(f"{label}({_escaped(name)})" for label, name in named if name is not None)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _acls(image: AclsImage) -> Directory:
    def child(name: str) -> Node | None:
        entry = image.entries.get(_id_in(name))
        return None if entry is None else acl_text(entry)

    return Directory(lambda: [uuid_to_text(entry_id) for entry_id in image.entries], child)


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
