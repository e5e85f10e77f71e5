"""The group coordinator: a shard for each partition of ``__consumer_offsets``, pure.

`kvorum.coordinator` says what its caller does. JoinGroup and SyncGroup have no `response` but
promises; one that is replaced by another of the same member is never kept, as in Kafka.
DescribeGroups, ListGroups and OffsetFetch read what is committed.
"""
