"""The order of Java's tables, where it depends on how they came to be; results of Java 17."""

from collections.abc import Collection

from kvorum.groups.assignors.hash_table import HashTable, capacity_for, capacity_of, set_capacity
from kvorum.groups.assignors.member_target import topic_table
from kvorum.groups.assignors.name_order import names_in_order, union_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet


def table(capacity: int, *keys: int) -> HashTable[int]:
    return HashTable(int, capacity, keys)


def multiples(step: int, *numbers: int) -> list[int]:
    return [step * number for number in numbers]


def without(others: Collection[int], keys: HashTable[int]) -> list[int]:
    return [key for key in keys.in_order() if key not in others]


def test_capacities_are_powers_of_two() -> None:
    assert [capacity_of(asked) for asked in (0, 1, 2, 3, 4, 5)] == [1, 1, 2, 4, 4, 8]
    assert [capacity_for(count) for count in (0, 3, 6, 12, 13)] == [1, 8, 16, 32, 32]
    assert [set_capacity(count) for count in (0, 11, 12)] == [16, 16, 32]


def test_a_key_that_is_put_is_the_last_of_its_bucket() -> None:
    assert table(16, 17, 1, 17, 0).in_order() == [0, 17, 1]


def test_a_key_that_is_computed_is_the_first_of_its_bucket() -> None:
    keys = table(16, 17)
    for key in (1, 17, 0):
        keys.compute_if_absent(key)
    assert keys.in_order() == [0, 1, 17]
    assert len(keys) == 3


def test_a_table_grows_when_a_key_is_put_but_only_after_one_is_computed() -> None:
    keys = table(2, 3)
    keys.put(1)
    assert keys.in_order() == [1, 3]
    keys = table(2, 3)
    keys.compute_if_absent(0)
    assert keys.in_order() == [0, 3]
    keys.compute_if_absent(5)
    # Four buckets: 5 would come after 0 and beside 3 if there were still two.
    assert keys.in_order() == [0, 5, 3]
    keys.compute_if_absent(9)
    assert keys.in_order() == [0, 9, 5, 3]
    keys.compute_if_absent(9)
    assert keys.in_order() == [0, 9, 3, 5]


def test_a_small_table_grows_for_the_ninth_key_of_a_bucket() -> None:
    eight = [16 * number for number in reversed(range(8))]
    assert table(16, *eight, 1).in_order() == [*eight, 1]
    # The odd multiples of sixteen have a bucket of their own in a table of 32, which comes last.
    assert table(16, *eight, 128, 1).in_order() == [96, 64, 32, 0, 128, 1, 112, 80, 48, 16]


def test_a_small_table_grows_for_the_eighth_key_of_a_bucket_that_is_computed() -> None:
    keys = table(16, 1)
    for key in multiples(16, *range(8)):
        keys.compute_if_absent(key)
    assert keys.in_order() == [96, 64, 32, 0, 1, 112, 80, 48, 16]


def test_the_ninth_key_of_a_bucket_makes_a_tree_and_the_eighth_one_that_is_computed() -> None:
    assert table(64, *multiples(64, *range(8))).in_order() == multiples(64, *range(8))
    keys = table(64, *multiples(64, *range(9)))
    assert keys.in_order() == multiples(64, 3, 0, 1, 2, 4, 5, 6, 7, 8)
    keys = table(64)
    for key in multiples(64, *range(7)):
        keys.compute_if_absent(key)
    assert keys.in_order() == multiples(64, *reversed(range(7)))
    keys.compute_if_absent(448)
    assert keys.in_order() == multiples(64, 4, 7, 6, 5, 3, 2, 1, 0)


def test_a_key_that_is_put_or_computed_has_its_place_in_the_tree() -> None:
    evens = range(0, 18, 2)
    keys = table(64, *multiples(64, *evens))
    keys.put(64)
    assert keys.in_order() == multiples(64, 6, 0, 1, 2, 4, 8, 10, 12, 14, 16)
    keys.compute_if_absent(704)
    keys.compute_if_absent(704)
    assert keys.in_order() == multiples(64, 6, 0, 1, 2, 4, 8, 10, 12, 11, 14, 16)
    assert len(keys) == 11


def test_hashes_are_compared_as_signed_numbers() -> None:
    negative = [1 << 31 | key for key in multiples(64, 0, 1, 2, 3)]
    positive = multiples(64, 0, 1, 2, 3, 4)
    assert table(64, *positive, *negative).in_order() == [
        *multiples(64, 1, 0, 2, 3, 4),
        *negative,
    ]


def test_keys_of_one_hash_are_compared_if_they_have_an_order() -> None:
    colliding = [
        start + end
        for start in ("BBBBBB", "AaAaAa", "BBAaBB", "AaBBAa", "BBBBAa", "AaAaBB")
        for end in ("BB", "Aa")
    ]
    # The ninth and the tenth make 64 buckets of sixteen; the eleventh makes a tree.
    assert names_in_order(colliding[:10]) == colliding[:10]
    first = "BBAaBBAa"
    others = [name for name in colliding[:11] if name != first]
    assert names_in_order(colliding[:11]) == [first, *others]


def test_topics_of_one_hash_are_compared_by_two_signed_numbers() -> None:
    halves = [(number * 5 + 3) % 9 << 32 | (number + 1) % 2 << 63 for number in range(9)]
    topic_ids = [half.to_bytes(8) * 2 for half in halves]
    ordered = topic_table(64, topic_ids).in_order()
    assert [topic_ids.index(topic_id) for topic_id in ordered] == [2, 0, 1, 3, 4, 5, 6, 7, 8]


def test_a_removal_makes_a_list_of_a_small_tree() -> None:
    keys = table(64, *multiples(64, *range(9)))
    for key in multiples(64, 8, 7, 6, 5, 4, 2):
        keys.remove(key)
    keys.put(128)
    assert keys.in_order() == multiples(64, 1, 3, 0, 2)


def test_a_doubled_table_has_lists_of_six_keys_of_a_tree_and_trees_of_seven() -> None:
    others = range(1, 49)
    keys = table(64, *multiples(64, *range(12)), *others)
    assert without(others, keys) == multiples(64, 0, 2, 4, 6, 8, 10, 3, 1, 5, 7, 9, 11)
    keys = table(64, *multiples(64, *range(14)), *others)
    assert without(others, keys) == multiples(64, 2, 0, 4, 6, 8, 10, 12, 3, 1, 5, 7, 9, 11, 13)


def test_a_tree_whose_keys_stay_together_is_kept() -> None:
    others = range(1, 49)
    keys = table(64, *multiples(128, *range(0, 18, 2), 1), *others)
    # Another tree, made of the keys in this order, would have another root.
    assert without(others, keys) == multiples(128, 6, 0, 1, 2, 4, 8, 10, 12, 14, 16)


def test_a_removed_key_leaves_the_table_as_large_as_it_was() -> None:
    keys = table(2, 3, 1)
    keys.remove(1)
    keys.put(0)
    keys.put(4)
    keys.remove(0)
    assert keys.in_order() == [4, 3]


def test_names_come_in_the_order_of_a_set() -> None:
    # "Aa" and "BB" have the same hash.
    assert names_in_order(["b", "BB", "a", "Aa"]) == ["BB", "Aa", "a", "b"]
    # Twelve names have 32 buckets, and "p" is in the first of sixteen.
    assert names_in_order("pabcdefghij")[0] == "p"
    assert names_in_order("pabcdefghijk")[0] == "a"


def test_the_union_begins_with_the_larger_set_or_with_the_matched_topics() -> None:
    assert union_in_order(["a", "b"], ["c"]) == ["a", "b", "c"]
    assert union_in_order(["a", "b"], ["c", "b"]) == ["c", "b", "a"]


def test_an_ordered_set_is_equal_to_any_set_of_its_elements() -> None:
    ordered = OrderedSet([3, 1, 3])
    assert list(ordered) == [3, 1]
    assert ordered == OrderedSet([1, 3]) == frozenset({1, 3})
    assert hash(ordered) == hash(frozenset({1, 3}))
