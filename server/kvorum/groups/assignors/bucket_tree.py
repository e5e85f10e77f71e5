"""The red-black tree of a bucket of Java's HashMap, which decides the order of the bucket.

The bucket is a list beside the tree. A new key comes right after its parent in the tree, and the
root moves to the front. Both depend on the tree's shape, which is that of any red-black tree whose
removed inner keys are replaced by the next greater one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeAlias, TypeVar

Key = TypeVar("Key")
Rank: TypeAlias = tuple[int, bytes]

_LEFT: Final = 0
_RIGHT: Final = 1


class _Node(Generic[Key]):
    """A key with its place in the tree; new ones are red."""

    __slots__ = ("children", "is_red", "key", "parent", "rank")

    def __init__(self, key: Key, rank: Rank) -> None:
        self.key = key
        self.rank = rank
        self.parent: _Node[Key] | None = None
        self.children: list[_Node[Key] | None] = [None, None]
        self.is_red = True

    def side(self, parent: _Node[Key]) -> int:
        """Return the side on which the node is below its parent."""
        return _LEFT if parent.children[_LEFT] is self else _RIGHT


class BucketTree(Generic[Key]):
    """The distinct keys of a bucket that is a tree, in the order in which Java iterates them."""

    __slots__ = ("_nodes", "_order", "_rank_of", "_root")

    def __init__(self, keys: Iterable[Key], rank_of: Callable[[Key], Rank]) -> None:
        """Make a tree of a list of keys.

        `rank_of` returns what is compared of a key. A new key of the same rank as another one is
        taken for the smaller of the two.
        """
        self._rank_of = rank_of
        self._order = list(keys)
        self._nodes: dict[Key, _Node[Key]] = {}
        self._root: _Node[Key] | None = None
        for key in self._order:
            self._grow(key)
        self._move_root_to_front()

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, key: Key) -> bool:
        return key in self._nodes

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys in the order of the bucket."""
        return iter(self._order)

    @property
    def is_small(self) -> bool:
        """Whether Java makes a list of the bucket when a key is removed."""
        left, right = self._top.children
        return left is None or right is None or left.children[_LEFT] is None

    def add(self, key: Key) -> None:
        """Add a key that is not there, after its parent; the root comes first."""
        parent = self._grow(key)
        assert parent is not None, "A bucket without keys is no tree"
        self._order.insert(self._order.index(parent.key) + 1, key)
        self._move_root_to_front()

    def remove(self, key: Key) -> None:
        """Remove a key that is there from a tree that is not small; the root comes first."""
        self._order.remove(key)
        node = self._nodes.pop(key)
        left, right = node.children
        if left is not None and right is not None:
            node = self._replace_by_next(node, right)
        child = node.children[_LEFT] or node.children[_RIGHT]
        if child is not None:
            # An only child is red, and its parent black.
            child.is_red = False
        elif not node.is_red:
            self._restore_black_height(node)
        self._put_in_place_of(node, child)
        self._move_root_to_front()

    def _grow(self, key: Key) -> _Node[Key] | None:
        """Add a key to the tree; return what was its parent then, None for the first key."""
        node = self._nodes[key] = _Node(key, self._rank_of(key))
        parent = None
        side = _LEFT
        below = self._root
        while below is not None:
            parent = below
            side = _RIGHT if node.rank > parent.rank else _LEFT
            below = parent.children[side]
        node.parent = parent
        if parent is None:
            self._root = node
        else:
            parent.children[side] = node
        self._part_red_nodes(node)
        return parent

    def _part_red_nodes(self, node: _Node[Key]) -> None:
        """Restore the rule that no red node has a red parent, which a new one may break."""
        while (parent := node.parent) is not None and parent.is_red:
            grandparent = parent.parent
            assert grandparent is not None, "The root is black"
            side = parent.side(grandparent)
            uncle = grandparent.children[1 - side]
            grandparent.is_red = True
            if uncle is not None and uncle.is_red:
                parent.is_red = False
                uncle.is_red = False
                node = grandparent
                continue
            if node.side(parent) != side:
                self._rotate(parent, side)
                lowered = parent
                parent = node
                node = lowered
            parent.is_red = False
            self._rotate(grandparent, 1 - side)
        if parent is None:
            node.is_red = False

    def _replace_by_next(self, node: _Node[Key], right: _Node[Key]) -> _Node[Key]:
        """Give a node the next greater key; return the node that had it, to be taken out."""
        following = right
        while (smaller := following.children[_LEFT]) is not None:
            following = smaller
        node.key = following.key
        node.rank = following.rank
        self._nodes[node.key] = node
        return following

    def _restore_black_height(self, node: _Node[Key]) -> None:
        """Make up for a black node that is missing on every path through `node`."""
        while (parent := node.parent) is not None:
            side = node.side(parent)
            sibling = self._black_sibling(parent, 1 - side)
            near = sibling.children[side]
            far = sibling.children[1 - side]
            if far is None or not far.is_red:
                if near is None or not near.is_red:
                    sibling.is_red = True
                    node = parent
                    if node.is_red:
                        node.is_red = False
                        return
                    continue
                self._rotate(sibling, 1 - side)
                far = sibling
                sibling = near
            sibling.is_red = parent.is_red
            parent.is_red = False
            far.is_red = False
            self._rotate(parent, side)
            return

    def _black_sibling(self, parent: _Node[Key], side: int) -> _Node[Key]:
        """Return the child on a side, once a black one was rotated there if it was red."""
        child = parent.children[side]
        assert child is not None, "The other side is not lower"
        if not child.is_red:
            return child
        child.is_red = False
        parent.is_red = True
        self._rotate(parent, 1 - side)
        inner = parent.children[side]
        assert inner is not None, "A red node within the tree has two children"
        return inner

    def _rotate(self, node: _Node[Key], side: int) -> None:
        """Lower a node to a side; its child on the other side takes its place."""
        risen = node.children[1 - side]
        assert risen is not None, "No node is rotated towards a missing child"
        inner = risen.children[side]
        self._put_in_place_of(node, risen)
        risen.children[side] = node
        node.parent = risen
        node.children[1 - side] = inner
        if inner is not None:
            inner.parent = node

    def _put_in_place_of(self, node: _Node[Key], other: _Node[Key] | None) -> None:
        """Let the parent of a node have another one, or none, instead."""
        parent = node.parent
        if parent is None:
            self._root = other
        else:
            parent.children[node.side(parent)] = other
        if other is not None:
            other.parent = parent

    @property
    def _top(self) -> _Node[Key]:
        assert self._root is not None, "A bucket without keys is no tree"
        return self._root

    def _move_root_to_front(self) -> None:
        first = self._top.key
        self._order.remove(first)
        self._order.insert(0, first)
