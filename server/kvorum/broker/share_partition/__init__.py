"""Share partitions of a broker (KIP-932): the records that members of a share group have.

`SharePartition` keeps the records of one partition for one group. It has no clock, no timer and no
network: its methods get the time, and return what is due outside. The duties of its caller:

1. Call `begin_initialization` with the first use. Where that returns True, read the state from the
   persister and call `initialize`, or `fail_initialization` when there is no start offset.
2. For each fetch: take the fetch lock, read the log from `next_fetch_offset`, `acquire` from what
   was read, or `move_log_start` if the offset is out of range, and release the fetch lock.
3. Hand each `StateWrite` to the persister, and then its error to `complete_write`, whose refusal
   is the answer of the request that waits for the write.
4. Copy each `DeadLetter` to the dead-letter queue, and then call `complete_dead_letters`.
5. Call `expire_locks` at `next_deadline_ms`, which may change with every call.
6. Try the waiting fetches again after each write, and when locks have expired.
7. Call `mark_fenced` when another broker, or another state epoch, has taken over.
"""
