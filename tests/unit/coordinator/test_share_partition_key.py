"""The text of a share partition's key, and the texts that are none."""

import pytest

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.wire.uuid_text import uuid_from_text

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
TOPIC_ID = uuid_from_text(TOPIC)


@pytest.mark.parametrize(
    ("text", "group_id", "partition"),
    [
        (f"group:{TOPIC}:3", "group", 3),
        (f"a:b:c:{TOPIC}:0", "a:b:c", 0),
        (f"group:{TOPIC}:+3::", "group", 3),
        (f":x:{TOPIC}:-1", ":x", -1),
    ],
)
def test_the_last_two_parts_are_topic_and_partition(
    text: str, group_id: str, partition: int
) -> None:
    key = SharePartitionKey.from_coordinator_key(text)
    assert key == (group_id, TOPIC_ID, partition)
    assert key.coordinator_key == f"{group_id}:{TOPIC}:{partition}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not of the form"),
        (":::", "not of the form"),
        (f"group:{TOPIC}", "not of the form"),
        (f" \t:{TOPIC}:1", "names no group"),
        ("group:AAEC:1", "not equal to the expected 16 bytes"),
        (f"group:{TOPIC}:one", "one"),
    ],
)
def test_a_text_of_another_form_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SharePartitionKey.from_coordinator_key(text)
