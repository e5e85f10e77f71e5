"""The order of Java's HashMap; Kafka's own shard judges it in tests/interop as well."""

from kvorum.metadata.java_hash import JavaHashMap, string_hash


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
