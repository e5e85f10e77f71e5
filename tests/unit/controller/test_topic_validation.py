"""Names of topics that metrics could not tell apart."""

import pytest

from kvorum.controller.topic_validation import SEPARATORS_MAX, CollidingNames
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.messages.topic_record import TopicRecord


def topics(*names: str) -> TopicsImage:
    records = [
        (TopicRecord(name=name, topic_id=bytes([number]) * 16), 0, number)
        for number, name in enumerate(names)
    ]
    return MetadataImage().apply_all(records).topics


@pytest.mark.parametrize("more", ["", "." * SEPARATORS_MAX], ids=["few", "many"])
@pytest.mark.parametrize(
    ("existing", "name", "expected"),
    [
        (["a_b"], "a.b", "a_b"),
        (["a.b"], "a_b", "a.b"),
        (["a-b"], "a.b", None),
        (["a_b", "a.b"], "a.b", "a.b"),
        (["x_y.z", "x.y_z"], "x_y_z", "x.y_z"),
    ],
)
def test_the_first_name_that_differs_only_in_separators_is_found(
    existing: list[str], name: str, expected: str | None, more: str
) -> None:
    names = CollidingNames(topics(*(each + more for each in existing)))
    assert names.existing(name + more) == (None if expected is None else expected + more)


def test_a_name_without_separators_collides_with_nothing() -> None:
    assert CollidingNames(topics("ab", "a.b")).existing("ab") is None
