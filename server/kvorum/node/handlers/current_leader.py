"""The leader of a partition that another broker leads, named in the refusal (KIP-951)."""

from typing import NamedTuple

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicImage

NO_LEADER = -1


class LeaderNode(NamedTuple):
    """A partition's leader and leader epoch; both are -1 where the partition is not known."""

    leader_id: int
    leader_epoch: int


class NodeEndpoint(NamedTuple):
    """The address of a leader for clients, in the order of the fields of a response."""

    node_id: int
    host: str
    port: int
    rack: str | None


class CurrentLeaders:
    """The leaders that one response names; `endpoints` has each that is alive once."""

    def __init__(self, image: MetadataImage, listener: str) -> None:
        self._image = image
        self._listener = listener
        self._endpoints: dict[int, NodeEndpoint] = {}

    @property
    def endpoints(self) -> list[NodeEndpoint]:
        """The leaders that were asked for, on the listener of the request."""
        return list(self._endpoints.values())

    def of(self, name: str, topic_id: bytes, index: int) -> LeaderNode:
        """Return the leader of a partition, of a topic by its name, or by its id."""
        topic = self._topic(name, topic_id)
        registration = None if topic is None else topic.partitions.get(index)
        if registration is None:
            return LeaderNode(NO_LEADER, NO_LEADER)
        broker = self._image.cluster.brokers.get(registration.leader)
        if broker is not None and not broker.is_fenced:
            endpoint = broker.endpoint(self._listener)
            if endpoint is not None:
                self._endpoints[broker.id] = NodeEndpoint(
                    broker.id, endpoint.host, endpoint.port, broker.rack
                )
        return LeaderNode(registration.leader, registration.leader_epoch)

    def _topic(self, name: str, topic_id: bytes) -> TopicImage | None:
        topics = self._image.topics
        return topics.by_name(name) if name else topics.by_id.get(topic_id)
