"""An image as paths and values, one line each, as the metadata shell has them below ``/image``.

Each thing is there once, so ``topics/byId``, which repeats ``topics/byName``, is left out. The
shell cannot name the quotas of a default (of all users, say); they have ``<default>`` here. Two
images differ in such lines, and two replicas of a log in where they part and end.
"""

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.inspection.folded_log import FoldedLog
from kvorum.inspection.log_check.findings import Findings, Rule
from kvorum.inspection.log_check.listing import is_partition_directory, read_segments
from kvorum.inspection.log_check.replica_check import Replica, check_replicas
from kvorum.inspection.metadata_batches import Warn
from kvorum.inspection.metadata_files import list_metadata_files
from kvorum.inspection.reading import Tell
from kvorum.inspection.shell.image_tree import Node, Software, escaped_name, shell_tree
from kvorum.metadata.configs_image import CLIENT_ID, IP, USER, ClientQuotasImage, QuotaEntity
from kvorum.metadata.java_order import in_java_order
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.wire.java_text import java_double_text

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


def log_directory(path: Path) -> Path:
    """Return the metadata log's directory for that of a node; any other one is a log's own."""
    below = path / METADATA_LOG_DIRECTORY
    return below if below.is_dir() else path


def demand_log(directory: Path) -> None:
    """Raise `MetadataSourceError` where a directory has no log of metadata or of any partition.

    Two of them would be called equal.
    """
    if log_directory(directory) == directory and not is_partition_directory(directory):
        list_metadata_files(directory)


def is_metadata_log(path: Path) -> bool:
    """Return whether a path is a file, or the directory of a metadata log or of its node."""
    return not path.is_dir() or log_directory(path).name == METADATA_LOG_DIRECTORY


def read_through(path: Path, *, warn: Warn, tell: Tell, damages: list[str]) -> int:
    """Read the log in a directory from its beginning on, and return its end; raises OSError.

    A line for each damage is added to `damages` as soon as it is found. A segment that a running
    node has replaced, truncated or removed meanwhile has a warning.
    """
    end = 0
    for segment in read_segments(log_directory(path), tell=tell, damages=damages):
        end = max(end, segment.last_offset + 1)
        if segment.change is not None:
            warn(f"{segment.file}: {segment.change}")
    return end


def log_differences(first: Path, second: Path, *, warn: Warn) -> Iterator[str]:
    """Yield the first difference between the logs in two directories, once for each of them.

    Where a file cannot be read, as one that a running node has removed meanwhile, what follows is
    not compared, with a warning.
    """
    findings = Findings()
    replicas = [
        Replica(
            directory=log_directory(path),
            is_metadata=log_directory(path).name == METADATA_LOG_DIRECTORY,
            committed=0,
            voters=frozenset(),
        )
        for path in (first, second)
    ]
    check_replicas(replicas, findings)
    for finding in findings.all:
        if finding.rule is Rule.DIVERGENCE:
            yield finding.text
        elif finding.rule is Rule.UNREADABLE:
            warn(f"the logs are not compared to their ends: {finding.text}")


class Change(NamedTuple):
    """A path whose text differs; None where it is missing."""

    path: str
    before: str | None
    after: str | None


def image_changes(before: FoldedLog, after: FoldedLog) -> Iterator[Change]:
    """Yield the paths that differ: those of the first image in its order, then the others."""
    old = dict(image_entries(before))
    new = dict(image_entries(after))
    for path, value in old.items():
        if new.get(path) != value:
            yield Change(path, value, new.get(path))
    for path, value in new.items():
        if path not in old:
            yield Change(path, None, value)
