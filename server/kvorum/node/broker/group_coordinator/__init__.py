"""The group coordinator of a broker: what drives the shards of `kvorum.groups`.

`GroupCoordinatorService` has a method for each request. `CoordinatorRuntime` follows the image,
holds a `CoordinatorContext` for each partition of ``__consumer_offsets`` that this broker leads,
and hands it the operations on its groups. A context loads its shard from the log, appends what the
shard decides, and answers when it is committed.

Everything happens in the event loop, one operation after the other, so that a shard needs no
queue: an operation decides, appends and replays before the next one begins. What waits for the
high watermark is called by the partition; nothing polls.
"""
