"""The share coordinator's shard: it folds one partition of ``__share_group_state`` (KIP-932).

A share partition has a snapshot of its state, which its initialization writes. Every change after
it is an update, which is folded into the state by its start offset and its batches of records.
After so many updates, and after a time without any, a change is a snapshot again, so that the
records before the oldest of the last snapshots can be deleted.

`kvorum.coordinator` says what the caller of a shard has to do. A request for one share partition
is one result: an error code is in its response, and such a response waits for the records that
were written before it, too.
"""
