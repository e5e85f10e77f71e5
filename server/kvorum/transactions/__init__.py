"""The transaction coordinator's shard: it folds one partition of ``__transaction_state`` (KIP-98).

A transactional id has one record, which each step writes again as a whole. What a step computes is
a new `TransactionMetadata`; it counts when its record is committed, and until then the id is
pending: requests for it are answered CONCURRENT_TRANSACTIONS.

`kvorum.coordinator` says what the caller of a shard has to do. One thing comes in addition: the
shard hands every transaction whose end is committed to `write_markers`. When all partitions have
their markers, the caller hands it back to `TransactionCoordinatorShard.complete`.
"""
