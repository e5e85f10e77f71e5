"""The part of a broker that drives the shards of any coordinator (`kvorum.coordinator`).

`CoordinatorRuntime` follows the image, and holds a `CoordinatorContext` for each partition of the
coordinator's topic that this broker leads. A context loads its shard from the log, appends what the
shard decides, and answers when it is committed.

Everything happens in the event loop, one operation after the other, so that a shard needs no
queue: an operation decides and replays before the next one begins. The records of the operations of
a turn are appended as one batch (`CoordinatorBatch`), at the end of the turn or after the time that
is set (`AppendLinger`). If the log refuses it, all of them fail and the shard goes back. What waits
for the high watermark is called by the partition; nothing polls.
"""
