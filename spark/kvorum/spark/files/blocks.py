"""Batches of a range in blocks that are large enough for the price of a column to be small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from kvorum.spark.columnar.batch_block import BatchBlock, block_of, joined
from kvorum.spark.columnar.varints import Flags
from kvorum.spark.files.damage import Damage
from kvorum.spark.files.range_reader import BlockOrDamage
from kvorum.wire.records import RecordBatch

BLOCK_BYTES_MIN: Final = 1024 * 1024
"""A block of this size is handed on as it is; smaller ones are joined."""
JOINED_BYTES_MIN: Final = 4 * 1024 * 1024
"""The size of joined blocks, unless damage or the end follows them."""


def chosen_blocks(
    items: Iterable[BlockOrDamage], choose: Callable[[BatchBlock], Flags]
) -> Iterator[BatchBlock | Damage]:
    """Yield the batches that `choose` keeps, in blocks, and all damage, in their order.

    Only the bytes of batches that are kept wait in memory for others to be joined with.
    """
    small: list[BatchBlock] = []
    for item in _in_blocks(items):
        if isinstance(item, Damage):
            yield from _joined(small)
            small = []
            yield item
            continue
        block = item.where(choose(item))
        if block.size >= BLOCK_BYTES_MIN:
            yield from _joined(small)
            small = []
            yield block
        elif block.batch_count:
            small.append(block.copied())
            if sum(len(each.data) for each in small) >= JOINED_BYTES_MIN:
                yield from _joined(small)
                small = []
    yield from _joined(small)


def _joined(blocks: Sequence[BatchBlock]) -> Iterator[BatchBlock]:
    """Yield blocks as one, if there are any."""
    if blocks:
        yield joined(blocks)


def _in_blocks(items: Iterable[BlockOrDamage]) -> Iterator[BatchBlock | Damage]:
    """Yield the same batches and damage in the same order, all batches in blocks."""
    single: list[RecordBatch] = []
    size = 0
    for item in items:
        if single and (not isinstance(item, RecordBatch) or size >= BLOCK_BYTES_MIN):
            yield block_of(single)
            single, size = [], 0
        if isinstance(item, RecordBatch):
            single.append(item)
            size += item.size
        else:
            yield item
    if single:
        yield block_of(single)
