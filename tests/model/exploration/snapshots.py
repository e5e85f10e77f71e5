"""Snapshots: taking one and dropping the log before it, and fetching one (KIP-630)."""

from __future__ import annotations

from tests.model.exploration.design import Design
from tests.model.exploration.state import LEADER, Log, Node, Request


def with_snapshot(design: Design, node: Node) -> Node:
    """Return a node that took a snapshot of all that is committed, and dropped the log before."""
    offset = node.end if design.snapshots_uncommitted else node.watermark
    return node._replace(start=offset, durable=max(node.durable, offset))


def begun_download(node: Node, *, offset: int) -> Node:
    """Return a node that has to fetch a snapshot; not one that ends below what it knows."""
    return node._replace(download=offset) if offset > node.watermark else node


def part(leader: Node, request: Request) -> Log | None:
    """Return what the snapshot that is asked for holds, or None if it is not there any more."""
    if leader.role != LEADER or request.offset != leader.start:
        return None
    return leader.log[: leader.start]


def installed(design: Design, node: Node, content: Log) -> Node:
    """Return a node whose log goes on, empty, after a snapshot that is durable."""
    offset = len(content)
    log = content + node.log[offset:] if design.snapshot_keeps_tail else content
    return node._replace(
        log=log,
        start=offset,
        durable=len(log),
        watermark=max(node.watermark, offset),
        promised=node.promised if node.promised > offset else 0,
        download=0,
    )
