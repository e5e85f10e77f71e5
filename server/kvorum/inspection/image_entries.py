"""An image as paths and values, one line each: the paths of the metadata shell below ``/image``.

Each thing is there once, so ``topics/byId``, which repeats ``topics/byName``, is left out. The
shell cannot name the quotas of a default (of all users, say); they have ``<default>`` here.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.inspection.metadata_log.folded_log import FoldedLog
from kvorum.inspection.shell.image_tree import Software, escaped_name, shell_tree
from kvorum.inspection.shell.node import Node, in_java_order
from kvorum.metadata.client_quotas_image import CLIENT_ID, IP, USER, ClientQuotasImage, QuotaEntity
from kvorum.metadata.java_text import java_double_text

_NOBODY: Final = Software("", "")
_QUOTAS: Final = "clientQuotas"
_LEFT_OUT: Final = frozenset({"provenance", "topics/byId"})
_TYPE_LABELS: Final = MappingProxyType({CLIENT_ID: "clientId", IP: "ip", USER: "user"})
DEFAULT_NAME: Final = "<default>"


class Entry(NamedTuple):
    """A path below ``/image``, such as ``topics/byName/orders/0``, and the text there."""

    path: str
    value: str


def image_entries(folded: FoldedLog) -> Iterator[Entry]:
    """Yield what the image says, in the order of the paths' parts."""
    image = shell_tree(folded.image.published, folded.provenance, _NOBODY).child("image")
    assert image is not None
    yield from _entries(image, "")
    yield from _quota_entries(folded.image.published.client_quotas)


def _entries(node: Node, path: str) -> Iterator[Entry]:
    if isinstance(node, str):
        yield Entry(path, node)
        return
    for name in node.sorted_names():
        below = f"{path}/{name}" if path else name
        child = node.child(name)
        if child is not None and below not in _LEFT_OUT and below != _QUOTAS:
            yield from _entries(child, below)


def _quota_entries(image: ClientQuotasImage) -> Iterator[Entry]:
    named = {_entity_text(entity): values for entity, values in image.entities.items()}
    for name in sorted(named, key=in_java_order):
        for key in sorted(named[name]):
            yield Entry(f"{_QUOTAS}/{name}/{key}", java_double_text(named[name][key]))


def _entity_text(entity: QuotaEntity) -> str:
    return "_".join(
        f"{_TYPE_LABELS.get(kind, kind)}({DEFAULT_NAME if name is None else escaped_name(name)})"
        for kind, name in entity
    )
