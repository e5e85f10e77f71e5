"""The order of Kafka's TimelineHashMap; results of Kafka 4.4.0, where each key was put twice."""

from kvorum.coordinator.timeline_order import timeline_order


def test_keys_come_by_their_slots() -> None:
    assert timeline_order("abcde", most_keys=5) == ["c", "e", "b", "d", "a"]
    # The third hash is the smallest int there is, and the fourth has surrogates.
    keys = ["Aa", "BB", "polygenelubricants", "\U0001f600", "b", "a"]
    ordered = ["polygenelubricants", "BB", "Aa", "b", "\U0001f600", "a"]
    assert timeline_order(keys, most_keys=6) == ordered


def test_of_one_slot_the_newest_key_comes_first() -> None:
    assert timeline_order(["Aa", "BB"], most_keys=2) == ["BB", "Aa"]
    assert timeline_order(["BB", "Aa"], most_keys=2) == ["Aa", "BB"]


def test_a_map_that_had_more_keys_has_more_slots() -> None:
    assert timeline_order("bg", most_keys=4) == ["g", "b"]
    assert timeline_order("bg", most_keys=5) == ["b", "g"]
