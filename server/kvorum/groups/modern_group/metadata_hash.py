"""The hash of the topics that a group subscribes to (KIP-1101), equal on every broker."""

import struct
from collections.abc import Iterable
from typing import Final

import xxhash

from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicImage

NO_TOPICS: Final = 0
_FORMAT_VERSION: Final = b"\x00"
_INT: Final = struct.Struct("<i")
_UNSIGNED_LONG: Final = struct.Struct("<Q")
_UTF_16_UNIT_BYTES: Final = 2
_HALF_OF_ID_BYTES: Final = 8
_SIGN_BIT: Final = 1 << 63


class TopicHashes:
    """The hashes of topics, of which each is computed once while the topic stays as it is.

    As in Kafka, a hash has the racks that brokers had at that time.
    """

    def __init__(self) -> None:
        self._hashes: dict[str, tuple[TopicImage, int]] = {}

    def of_group(self, topics: Iterable[str], image: MetadataImage) -> int:
        """Return the hash of topics by their names, 0 where none exists; a signed int64."""
        hashes = b"".join(
            _UNSIGNED_LONG.pack(self._of_topic(topic, image.cluster))
            for topic in map(image.topics.by_name, sorted(topics))
            if topic is not None
        )
        if not hashes:
            return NO_TOPICS
        found = xxhash.xxh3_64_intdigest(hashes)
        return found - 2 * _SIGN_BIT if found >= _SIGN_BIT else found

    def forget(self, names: Iterable[str]) -> None:
        """Drop the hashes of topics that have changed or gone."""
        for name in names:
            self._hashes.pop(name, None)

    def _of_topic(self, topic: TopicImage, cluster: ClusterImage) -> int:
        known = self._hashes.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        found = _topic_hash(topic, cluster)
        self._hashes[topic.name] = topic, found
        return found


def _topic_hash(topic: TopicImage, cluster: ClusterImage) -> int:
    parts = [
        _FORMAT_VERSION,
        topic.id[_HALF_OF_ID_BYTES - 1 :: -1],
        topic.id[: _HALF_OF_ID_BYTES - 1 : -1],
        _text(topic.name),
        _INT.pack(len(topic.partitions)),
    ]
    for index in sorted(topic.partitions):
        parts.append(_INT.pack(index))
        brokers = map(cluster.brokers.get, topic.partitions[index].replicas)
        racks = sorted(one.rack for one in brokers if one is not None and one.rack is not None)
        for rack in racks:
            parts += (_INT.pack(_unit_count(rack)), _text(rack))
    return xxhash.xxh3_64_intdigest(b"".join(parts))


def _text(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass") + _INT.pack(_unit_count(text))


def _unit_count(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // _UTF_16_UNIT_BYTES
