"""The order of a bucket that is a tree; results of Java 17.

Keys of one rank are an exception: Java orders them by chance.
"""

from collections.abc import Iterable

from kvorum.groups.assignors.bucket_tree import BucketTree, Rank


def rank(key: int) -> Rank:
    return key, b""


def tree(keys: Iterable[int]) -> BucketTree[int]:
    return BucketTree(keys, rank)


def test_the_root_of_a_new_tree_comes_first_and_the_others_stay() -> None:
    assert list(tree(range(9))) == [3, 0, 1, 2, 4, 5, 6, 7, 8]
    assert list(tree(reversed(range(9)))) == [5, 8, 7, 6, 4, 3, 2, 1, 0]


def test_a_new_key_follows_its_parent_and_a_new_root_comes_first() -> None:
    bucket = tree(range(0, 18, 2))
    assert list(bucket) == [6, 0, 2, 4, 8, 10, 12, 14, 16]
    bucket.add(3)
    assert list(bucket) == [6, 0, 2, 4, 3, 8, 10, 12, 14, 16]
    later = range(18, 38, 2)
    for key in later:
        bucket.add(key)
    assert list(bucket) == [14, 6, 0, 2, 4, 3, 8, 10, 12, 16, *later]
    assert 36 in bucket
    assert 35 not in bucket
    assert len(bucket) == 20


def test_smaller_keys_turn_the_tree_the_other_way() -> None:
    bucket = tree(range(10, 28, 2))
    for key in (8, 6, 4, 2, 0, 1):
        bucket.add(key)
    assert list(bucket) == [16, 10, 8, 6, 4, 2, 0, 1, 12, 14, 18, 20, 22, 24, 26]


def test_a_new_key_is_smaller_than_another_one_of_its_rank() -> None:
    bucket = BucketTree(range(0, 18, 2), lambda key: rank(key // 2))
    bucket.add(3)
    assert list(bucket) == [6, 0, 3, 2, 4, 8, 10, 12, 14, 16]


def test_a_removal_brings_the_new_root_to_the_front() -> None:
    bucket = tree(range(9))
    bucket.remove(3)
    assert list(bucket) == [4, 0, 1, 2, 5, 6, 7, 8]
    assert 3 not in bucket


def test_a_tree_is_small_when_its_root_has_no_grandchild_on_the_left() -> None:
    bucket = tree(range(9))
    for key in (8, 7, 6, 5):
        assert not bucket.is_small
        bucket.remove(key)
    assert not bucket.is_small
    bucket.remove(4)
    assert bucket.is_small
