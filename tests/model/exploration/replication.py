"""Replication: fetches, what counts as committed, and snapshots taken and fetched (KIP-630)."""

from tests.model.exploration.design import Design
from tests.model.exploration.state import (
    LEADER,
    NODES_MAX,
    Log,
    Node,
    Request,
    bit,
    members,
    node_of,
    replica_of,
    voters_of,
)


def no_progress(node_count: int) -> tuple[tuple[int, ...], ...]:
    return ((0,) * node_count,)


def progress_of(leader: Node, replica: int) -> int:
    directory = replica // NODES_MAX
    rows = leader.progress
    return rows[directory][node_of(replica)] if directory < len(rows) else 0


def with_progress(leader: Node, replica: int, offset: int) -> Node:
    if offset == progress_of(leader, replica):
        return leader
    rows = [list(row) for row in leader.progress]
    while len(rows) <= replica // NODES_MAX:
        rows.append([0] * len(rows[0]))
    rows[replica // NODES_MAX][node_of(replica)] = offset
    return leader._replace(progress=tuple(map(tuple, rows)))


def position_end(node: Node, epoch: int) -> tuple[int, int]:
    """Return where the largest epoch not above `epoch` ends in a log, and that epoch.

    Only what is still in the log is looked at; its start is the end of a snapshot.
    """
    offset = node.end
    if not offset:
        return 0, 0
    while offset > node.start and node.log[offset - 1].epoch > epoch:
        offset -= 1
    return offset, node.log[offset - 1].epoch if offset else epoch


def judged(design: Design, leader: Node, request: Request) -> tuple[str, int, int]:
    """Judge where a follower's log ends: valid there, or where it diverges, or which snapshot."""
    offset, epoch = request.offset, request.last_epoch
    start_epoch = leader.log[leader.start - 1].epoch if leader.start else 0
    is_before = offset < leader.start or epoch < start_epoch
    is_other = offset == leader.start and epoch != start_epoch
    if leader.start and (is_before or is_other) and not design.snapshot_known_by_offset:
        return "snapshot", leader.start, start_epoch
    if leader.start and offset < leader.start:
        return "snapshot", leader.start, start_epoch
    if offset == 0 or (design.appends_without_epoch_check and offset <= leader.end):
        return "records", offset, epoch
    if design.snapshot_known_by_offset and offset == leader.start:
        return "records", offset, epoch
    end, end_epoch = position_end(leader, epoch)
    if end_epoch != epoch or end < offset:
        return "diverging", end, end_epoch
    return "records", offset, epoch


def truncated(design: Design, node: Node, *, offset: int, epoch: int) -> Node:
    """Return a node that learned that its log diverges after the end of an epoch."""
    if epoch == 0:
        cut = min(offset, node.end)
    else:
        own_end, own_epoch = position_end(node, epoch)
        cut = min(offset, own_end) if own_epoch == epoch else own_end
    kept = node.start if design.truncates_below_watermark else max(node.watermark, node.start)
    if cut < kept:
        return node
    log = node.log[:cut]
    if design.keeps_voters_when_truncating:
        log = _with_stale_voters(node.log, cut)
    return node._replace(log=log, durable=min(node.durable, cut))


def _with_stale_voters(log: Log, cut: int) -> Log:
    """Return a log cut off, whose last record still tells the voters of what is gone."""
    stale = voters_of(log[cut:], 0)
    if not stale or not cut:
        return log[:cut]
    return (*log[: cut - 1], log[cut - 1]._replace(voters=stale))


def appended(design: Design, node: Node, *, entries: Log, watermark: int, syncs: bool) -> Node:
    """Return a node that takes fetched records; they are not durable before they are flushed."""
    log = node.log + entries
    durable = len(log) if syncs else node.durable
    return with_promise(node._replace(log=log, durable=durable), watermark)


def with_promise(node: Node, watermark: int) -> Node:
    """Return a node that takes a leader's high watermark over as far as its log is durable."""
    known = max(node.watermark, min(watermark, node.durable))
    return node._replace(watermark=known, promised=watermark if watermark > known else 0)


def flushed(node: Node) -> Node:
    return with_promise(node._replace(durable=node.end), node.promised)


def counted(design: Design, own: int, node: Node, *, first_voters: int) -> Node:
    """Return a leader that has counted again how far a majority is."""
    if node.role != LEADER:
        return node
    replica, voters = replica_of(own, node), voters_of(node.log, first_voters)
    if design.counts_itself_outside_voters:
        voters |= bit(replica)
    own_end = node.end if design.counts_unflushed_tail else node.durable
    ends = sorted(own_end if i == replica else progress_of(node, i) for i in members(voters))
    offset = ends[(len(ends) - 1) // 2]
    behind_own_start = offset > 0 and node.log[offset - 1].epoch == node.epoch
    if offset <= node.watermark:
        return node
    if not behind_own_start and not design.commits_older_epochs_by_count:
        return node
    return node._replace(watermark=offset)


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
