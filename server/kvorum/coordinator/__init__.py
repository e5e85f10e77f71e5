"""The part that all coordinators have in common: a shard folds one partition of an internal topic.

A shard is pure. It has the methods of `CoordinatorShard` (shard.py), and one for each request;
time comes in as `now_ms`, timers come out. Its state is in maps with one `timeline`. The caller
that drives a shard does this:

1. Load: `load_record` for each record, `replay_end_transaction_marker` for each marker, and in the
   timeline what is written and committed with the offset after them; then `on_loaded`.
2. A request gives a `CoordinatorResult`. Its `effects` are due at once: set and cancel timers by
   their keys, and send the answers whose promises have been kept. Then put `records` into a batch,
   which later results may share. If `replay_records` is true, `replay` each of them with the offset
   that it will have. In both cases the timeline is written up to the offset after them.
3. When the batch is appended and the high watermark reaches its end, the timeline is committed up
   to it. Then, for each result in order, `append_completed` with its `append` (if there is one)
   gives more effects; then send `response` or the error. A result without records has to wait for
   the records written before it in the same way.
4. When the append fails: revert the timeline to the offset before the batch, then for each result
   `append_failed` with the error of the log. A commit that takes too long is `append_failed`
   without the revert.
5. When a timer fires, `on_timeout` gives a result as a request does.
6. When leadership is lost: `on_unloaded`; the shard is of no use after it.

A request whose answer depends on others has no `response`: a `Promise` that the caller made is
kept by this or by a later result. Reads see what is committed.
"""
