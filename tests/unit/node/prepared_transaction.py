"""A transaction whose outcome is decided, and a cluster with the one partition that is in it."""

from immutables import Map

from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage, Endpoint
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.transactions.transaction_metadata import TransactionMetadata, TransactionPartition
from kvorum.transactions.transaction_state import TransactionState

LISTENER = "BROKERS"
ME = 1
NOBODY = -1
TOPIC = "orders"
TOPIC_ID = b"t" * 16
DIRECTORY = b"d" * 16
ID = "payments"
PREPARED = TransactionMetadata(
    transactional_id=ID,
    producer_id=7,
    producer_epoch=1,
    timeout_ms=60_000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({TransactionPartition(TOPIC, 0)}),
)


def led_by(leader: int) -> MetadataImage:
    """Return a cluster of this broker alone, and one partition."""
    broker = BrokerRegistration(
        id=ME,
        epoch=1,
        incarnation_id=DIRECTORY,
        listeners=(Endpoint(LISTENER, "localhost", 9092, 0),),
        supported_features=Map(),
        rack=None,
        is_fenced=False,
        is_in_controlled_shutdown=False,
        is_migrating_zk_broker=False,
        directories=(DIRECTORY,),
        cordoned_directories=None,
    )
    partition = PartitionRegistration((ME,), (DIRECTORY,), (ME,), leader=leader)
    topic = TopicImage(TOPIC, TOPIC_ID, Partitions((partition,)))
    return MetadataImage(
        cluster=ClusterImage(brokers=Map({ME: broker})),
        topics=TopicsImage(Map({TOPIC_ID: topic}), Map({TOPIC: TOPIC_ID})),
    )
