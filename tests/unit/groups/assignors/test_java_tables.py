"""The order of Java's tables, where it depends on how they came to be; results of Java 17."""

from kvorum.groups.assignors.hash_table import HashTable, capacity_for, capacity_of, set_capacity
from kvorum.groups.assignors.name_order import names_in_order, union_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet


def table(capacity: int, *keys: int) -> HashTable[int]:
    return HashTable(int, capacity, keys)


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
