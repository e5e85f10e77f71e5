"""The part of a broker that drives the shards of any coordinator (`kvorum.coordinator`).

`CoordinatorRuntime` follows the image, and holds a `CoordinatorContext` for each partition of the
coordinator's topic that this broker leads. A context loads its shard from the log, appends what the
shard decides, and answers when it is committed.

Everything happens in the event loop, one operation after the other, so that a shard needs no
queue: an operation decides, appends and replays before the next one begins. What waits for the
high watermark is called by the partition; nothing polls.
"""
