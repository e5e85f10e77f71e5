"""A client of a running quorum, which reads its metadata log as an observer without an id does.

`client` finds the leader, over a `connection`. `fetch` returns what is
committed, and `snapshot_copy` copies a snapshot where the log does not have its begin any more.
"""
