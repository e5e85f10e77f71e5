"""The order of Java's HashMap, and maps with a history beside a model with copies of all states."""

from random import Random

import pytest
from tests.unit.groups.looks_at_items import noted_looks

from kvorum.coordinator.timeline import Timeline
from kvorum.groups.offsets.store import OffsetTable, TopicPartition
from kvorum.metadata.java_hash import JavaHashMap, string_hash

STEPS = 400


def test_strings_hash_as_in_java() -> None:
    # Results of String.hashCode; the third is the smallest int there is, the last has surrogates.
    assert string_hash("") == 0
    assert string_hash("test") == 3556498
    assert string_hash("polygenelubricants") == 2**31
    assert string_hash("\U0001f600") == 1772899


def test_names_of_assignors_come_by_their_buckets() -> None:
    entries: JavaHashMap[int] = JavaHashMap()
    for number, name in enumerate(("range", "cooperative-sticky", "roundrobin", "sticky")):
        entries.set(name, number)
    assert entries.keys() == ("sticky", "range", "roundrobin", "cooperative-sticky")
    assert entries.values() == (3, 0, 2, 1)


def test_a_key_that_is_put_again_keeps_its_place_in_the_bucket_and_a_removed_one_does_not() -> None:
    entries: JavaHashMap[int] = JavaHashMap()
    # The same hash: one bucket.
    entries.set("Aa", 1)
    entries.set("BB", 2)
    entries.set("Aa", 3)
    assert entries.keys() == ("Aa", "BB")
    entries.pop("Aa")
    entries.set("Aa", 4)
    assert entries.keys() == ("BB", "Aa")
    assert entries.pop("nothing") is None


def test_a_table_grows_and_does_not_shrink() -> None:
    # Hashes 97 to 109: thirteen keys make a table of 32, where "a" is first.
    entries: JavaHashMap[int] = JavaHashMap()
    for letter in "pa":
        entries.set(letter, 0)
    assert entries.keys() == ("p", "a")
    for letter in "bcdefghijkl":
        entries.set(letter, 0)
    for letter in "bcdefghijkl":
        entries.pop(letter)
    assert entries.keys() == ("a", "p")


class Model:
    """The state at each offset that was written, and the newest one."""

    def __init__(self) -> None:
        self.newest: dict[tuple[str, TopicPartition], int] = {}
        self.states = {0: dict(self.newest)}
        self.written = 0
        self.committed = 0

    def write(self) -> None:
        self.written += 1
        self.states[self.written] = dict(self.newest)

    def commit(self, offset: int) -> None:
        self.committed = offset

    def revert(self, offset: int) -> None:
        self.newest = dict(self.states[offset])
        self.states = {one: state for one, state in self.states.items() if one <= offset}
        self.written = offset


def _entries(
    table: OffsetTable[int], group_id: str, epoch: int | None
) -> dict[tuple[str, TopicPartition], int]:
    topics = table.topics(group_id, epoch)
    if topics is None:
        return {}
    return {
        (group_id, TopicPartition(topic, partition)): value
        for topic, partitions in topics.items(epoch)
        for partition, value in partitions.items(epoch)
    }


@pytest.mark.parametrize("seed", range(20))
def test_a_table_has_the_states_of_the_model(seed: int) -> None:
    random = Random(seed)
    timeline, model = Timeline(), Model()
    table: OffsetTable[int] = OffsetTable(timeline)
    for step in range(STEPS):
        group_id = random.choice("ab")
        where = TopicPartition(random.choice("xy"), random.choice((0, 1)))
        kind = random.random()
        if kind < 0.4:
            table.put(group_id, where, step)
            model.newest[group_id, where] = step
        elif kind < 0.65:
            table.remove(group_id, where)
            model.newest.pop((group_id, where), None)
        elif kind < 0.85:
            model.write()
            timeline.written_offset = model.written
        elif kind < 0.93:
            offset = random.randint(model.committed, model.written)
            model.commit(offset)
            timeline.commit(offset)
        else:
            offset = random.randint(model.committed, model.written)
            model.revert(offset)
            timeline.revert(offset)
        for epoch, state in (
            (None, model.newest),
            (model.committed, model.states[model.committed]),
        ):
            assert _entries(table, "a", epoch) | _entries(table, "b", epoch) == state, (step, epoch)
        assert table.count == len(model.newest), step


def test_partitions_are_counted_without_a_look_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    table: OffsetTable[int] = OffsetTable(Timeline())
    for partition in range(100):
        table.put("g", TopicPartition("topic", partition), 1)
    looks = noted_looks(monkeypatch)
    assert table.count == 100
    # The group, and its topic.
    assert len(looks) == 2
