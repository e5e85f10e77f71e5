"""The group coordinator: a shard for each partition of ``__consumer_offsets``, pure.

A shard is a fold of its partition's records. `GroupCoordinatorShard` (shard.py) has a method for
each request; time comes in as `now_ms`, timers come out. The caller that drives one does this:

1. Load: `replay` each record, `replay_end_transaction_marker` each marker, `written` and
   `committed` with the offset after them; then `on_loaded`.
2. A request gives a `CoordinatorResult`. Its `effects` are due at once: set and cancel timers by
   their keys, and send the answers whose promises have been kept. Then append `records` as one
   batch. If `replay_records` is true, `replay` each of them with its offset. In both cases call
   `written` with the offset after the batch.
3. When the high watermark reaches that offset: `committed`, then `append_completed` with the
   result's `append` (if there is one), which gives more effects; then send `response` or the
   error. A result without records has to wait for the records written before it in the same way.
4. When the append fails: `revert` to the offset before the batch, then `append_failed` with the
   error of the log. A commit that takes too long is `append_failed` without `revert`.
5. When a timer fires, `on_timeout` gives a result as a request does.
6. When leadership is lost: `on_unloaded`; the shard is of no use after it.

JoinGroup and SyncGroup have no `response`: a `Promise` that the caller made is kept by this or by
a later result. A promise that is replaced by another of the same member is never kept, as in
Kafka. DescribeGroups, ListGroups and OffsetFetch read what is committed.
"""
