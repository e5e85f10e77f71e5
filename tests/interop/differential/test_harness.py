"""The means of comparing: what they let through, and what they do not."""

import pytest
from tests.interop.differential.comparing import Names, differences
from tests.interop.differential.harness import shrink
from tests.interop.differential.kinds import KINDS
from tests.interop.differential.metadata_log import LogRecord
from tests.interop.differential.script import Script, created, started, topic
from tests.interop.differential.view import ClusterView

from kvorum.wire.json_form import Json

OURS, THEIRS = "BBBBBBBBBBBBBBBBBBBBBg", "CCCCCCCCCCCCCCCCCCCCCg"


def names(topic_id: str, epoch: int) -> Names:
    """Return the names of a side with one topic and one broker."""
    view = ClusterView()
    register = {"brokerId": 1, "brokerEpoch": epoch, "fenced": True, "rack": None}
    view.fold(
        [
            LogRecord(0, "RegisterBrokerRecord", 4, register),
            LogRecord(1, "TopicRecord", 0, {"name": "t", "topicId": topic_id}),
        ]
    )
    return Names(view, frozenset(), {})


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_always_makes_the_same_script(kind: str) -> None:
    for seed in range(5):
        assert KINDS[kind](seed) == KINDS[kind](seed)


def test_ids_and_epochs_that_a_side_makes_up_are_equal() -> None:
    answers = [
        names(topic_id, epoch).answer("", {"topicId": topic_id, "brokerEpoch": epoch})
        for topic_id, epoch in ((OURS, 7), (THEIRS, 9))
    ]
    assert answers == [{"topicId": "<t#1>", "brokerEpoch": "<broker 1#1>"}] * 2


@pytest.mark.parametrize(
    ("real", "ours", "where"),
    [
        ({"a": 1}, {"a": 2}, "answer.a"),
        ({"a": 1}, {"a": True}, "answer.a"),
        ({"a": 1}, {}, "answer.a"),
        ({}, {"a": None}, "answer.a"),
        ([1, 2], [2, 1], "answer[0]"),
        ([1], [1, 1], "answer"),
        ({"a": [{"b": ""}]}, {"a": [{"b": None}]}, "answer.a[0].b"),
    ],
)
def test_every_difference_is_found(real: Json, ours: Json, where: str) -> None:
    assert next(differences(real, ours, "answer")).where == where
    assert list(differences(real, real, "answer")) == []


def test_the_order_of_records_counts_but_where_it_means_nothing() -> None:
    side = names(OURS, 7)
    changes = [
        LogRecord(index, "PartitionChangeRecord", 2, {"partitionId": index}) for index in range(3)
    ]
    fence = LogRecord(3, "BrokerRegistrationChangeRecord", 0, {"fenced": 1})

    def rows(*records: LogRecord) -> Json:
        return side.records("", records, is_placed=False)

    assert rows(*changes, fence) == rows(*reversed(changes), fence)
    assert rows(*changes, fence) != rows(fence, *changes)
    assert rows(*changes, fence) != rows(*changes[:2], fence, changes[2])


def test_a_failing_script_shrinks_to_what_makes_it_fail() -> None:
    culprits = (created(topic("a", [[1]])), created(topic("b", [[1]])))
    noise = started(2)
    script = Script("s", 0, (*noise, culprits[0], *noise, *noise, culprits[1], *noise))

    def still_fails(smaller: Script) -> bool:
        return set(map(id, culprits)) <= set(map(id, smaller.steps))

    assert shrink(script, still_fails).steps == culprits
