"""The order of Java's hash tables; the expectations are what Java 17 lists."""

from kvorum.metadata.java_hash import hash_table_order

FEATURES = (
    "eligible.leader.replicas.version",
    "group.version",
    "kraft.version",
    "metadata.version",
    "share.version",
    "streams.version",
    "transaction.version",
)
OF_THIRTY = "18 17 19 14 13 16 15 1 10 0 12 11 5 4 3 2 9 8 7 6 29 28 25 24 27 26 21 20 23 22"


def test_the_features_come_in_the_order_of_java() -> None:
    assert hash_table_order(FEATURES) == [*FEATURES[1:], FEATURES[0]]


def test_a_table_grows_with_what_is_in_it() -> None:
    names = hash_table_order(f"key-{number}" for number in range(30))
    assert [name.removeprefix("key-") for name in names] == OF_THIRTY.split()


def test_any_text_has_a_place_and_comes_once() -> None:
    texts = ["\u00e4", "\U0001f600", "", "zz", "Aa", "BB", "zz"]
    assert hash_table_order(texts) == ["", "zz", "Aa", "BB", "\u00e4", "\U0001f600"]
