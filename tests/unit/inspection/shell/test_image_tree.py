"""The shell's tree of an image; tests/interop compares it with the real shell's."""

import pytest

from kvorum.inspection.metadata_log.folding import Provenance
from kvorum.inspection.shell.image_tree import Software, shell_tree
from kvorum.inspection.shell.node import DanglingNameError, Directory, Node, find_lines, tree_lines
from kvorum.inspection.shell.node_text import time_text
from kvorum.metadata.image import MetadataImage
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

TOPIC_ID = bytes(range(16))
TOPIC_ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"


def tree_of(*records: Message) -> Directory:
    image = MetadataImage().apply_all((record, 0, 0) for record in records)
    return shell_tree(image, Provenance(9, 2, 1_700_000_000_500), Software("1", "abc"))


def at(node: Node | None, path: str) -> Node | None:
    for name in path.split("/"):
        assert isinstance(node, Directory)
        node = node.child(name)
    return node


def quota(name: str | None) -> ClientQuotaRecord:
    return ClientQuotaRecord([ClientQuotaRecord.EntityData("user", name)], "rate", 1.5)


TOPIC = (
    TopicRecord("t", TOPIC_ID),
    PartitionRecord(10, TOPIC_ID, [1], [1], leader=1, leader_epoch=0, partition_epoch=0),
    PartitionRecord(9, TOPIC_ID, [1], [1], leader=1, leader_epoch=0, partition_epoch=0),
)


def test_an_empty_image_has_all_its_directories() -> None:
    lines = "\n".join(tree_lines(tree_of()))
    assert "  features:\n    metadataVersion:\n      Optional.empty\n" in lines
    assert "  provenance:\n    offset 9, epoch 2, time 2023-11-14T22:13:20.5Z[UTC]\n" in lines
    assert lines.endswith("local:\n  commitId:\n    abc\n  version:\n    1")


def test_a_topic_is_reached_by_name_and_by_id() -> None:
    tree = tree_of(*TOPIC)
    by_name, by_id = (
        at(tree, "image/topics/byName/t"),
        at(tree, f"image/topics/byId/{TOPIC_ID_TEXT}"),
    )
    assert isinstance(by_name, Directory)
    assert by_name.sorted_names() == ["10", "9", "id", "name"]
    assert by_id is not None
    assert list(tree_lines(by_id)) == list(tree_lines(by_name))


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "image/topics/byName/other",
        "image/topics/byId/t",
        f"image/topics/byId/{TOPIC_ID_TEXT[:-1]}",
        "image/topics/byName/t/8",
        "image/topics/byName/t/-1",
        "image/cluster/brokers/1",
        "image/cluster/brokers/one",
        "image/configs/TOPIC:t",
        "image/clientQuotas/user(alice)",
        "image/acls/byId/t",
        "image/scram/PLAIN",
        "image/delegationToken/token",
    ],
)
def test_a_missing_path_is_none(path: str) -> None:
    assert at(tree_of(*TOPIC), path) is None


def test_a_default_quota_has_a_name_that_leads_nowhere() -> None:
    tree = tree_of(FeatureLevelRecord("metadata.version", 30), quota(None), quota("a(b)"))
    quotas = at(tree, "image/clientQuotas")
    assert quotas is not None
    assert list(tree_lines(quotas)) == [":", r"user(a\(b\)):", "  rate:", "    1.5"]
    with pytest.raises(DanglingNameError, match="Expected  to be a valid child of /image/client"):
        list(find_lines(tree, "/"))


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z[UTC]"),
        (-1, "1969-12-31T23:59:59.999Z[UTC]"),
        (1_709_164_800_020, "2024-02-29T00:00:00.02Z[UTC]"),
        (253_402_300_800_000, "+10000-01-01T00:00:00Z[UTC]"),
        (-62_167_219_200_001, "-0001-12-31T23:59:59.999Z[UTC]"),
    ],
)
def test_times(timestamp_ms: int, text: str) -> None:
    assert time_text(timestamp_ms) == text
