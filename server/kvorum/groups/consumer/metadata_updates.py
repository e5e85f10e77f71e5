"""The consequence of new metadata for consumer groups and share groups."""

from collections.abc import Collection

from kvorum.groups.modern_group.group import ModernGroup
from kvorum.groups.shard_state import ShardState


def follow_topics(shard: ShardState, names: Collection[str], *, has_new_topics: bool) -> None:
    """Have groups look at topics that came, changed or went, with their next heartbeat."""
    if has_new_topics:
        shard.new_topics_version = shard.image.last_offset
    shard.topic_hashes.forget(names)
    for group in shard.groups.values():
        if isinstance(group, ModernGroup) and any(map(group.is_subscribed_to, names)):
            group.request_metadata_refresh()
