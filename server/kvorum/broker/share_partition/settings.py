"""The configuration of a share group, as far as its share partitions need it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionSettings:
    """The values of the group, or those of the broker where the group has none."""

    record_locks_max: int
    """``share.partition.max.record.locks``: the most records in flight."""

    delivery_count_limit: int
    """``share.delivery.count.limit``: how often a record is delivered before it is archived."""

    record_lock_duration_ms: int
    """``share.record.lock.duration.ms``: how long a member has what it acquires."""

    is_renew_acknowledge_enabled: bool
    """``share.renew.acknowledge.enable``: whether members may renew their locks."""

    is_dead_letter_queue_enabled: bool
    """Whether rejected and undeliverable records are copied before they are archived.

    That is the case if the feature is on and the group has ``errors.deadletterqueue.topic.name``.
    """
