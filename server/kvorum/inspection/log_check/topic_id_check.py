"""Topic ids of partitions' directories compared with the metadata log of the same cluster."""

from __future__ import annotations

from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.log_check.partition_check import LogFacts
from kvorum.metadata.image import MetadataImage
from kvorum.storage.names import METADATA_LOG_DIRECTORY, parse_partition_directory
from kvorum.storage.small_files.partition_metadata import PARTITION_METADATA
from kvorum.wire.uuid_text import uuid_to_text


def check_topic_id(log: LogFacts, image: MetadataImage, findings: Findings) -> None:
    """Add a finding where a directory has the id of a topic that has another name.

    An id that the metadata does not know is a note: the topic may have been deleted, and another
    one of its name made, while the broker was away.
    """
    parsed = parse_partition_directory(log.directory.name)
    if parsed is None or log.topic_id is None or log.directory.name == METADATA_LOG_DIRECTORY:
        return
    name = parsed[0]
    owner, topic = image.topics.by_id.get(log.topic_id), image.topics.by_name(name)
    text = uuid_to_text(log.topic_id)
    path = log.directory / PARTITION_METADATA
    if owner is not None and owner.name != name:
        problem = f"topic id {text} is that of topic {owner.name}"
        findings.add(Rule.PARTITION_METADATA, path, problem, position=0)
    elif owner is None and topic is not None:
        problem = f"topic id {text} is an older one: the metadata log has {uuid_to_text(topic.id)}"
        findings.add(Rule.PARTITION_METADATA, path, problem, position=0, severity=Severity.NOTE)
