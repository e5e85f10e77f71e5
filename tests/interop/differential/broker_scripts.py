"""Scripts about brokers: registrations, heartbeats, directories, unregistering, good and bad."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.interop.differential import topic_scripts
from tests.interop.differential.script import (
    FEATURES,
    INFINITE,
    Fields,
    directory,
    features,
    heartbeat,
    registration,
)
from tests.interop.differential.story import BROKERS, RACKS, Chapter, Story
from tests.interop.differential.view import uuid_of

from kvorum.metadata.directory_ids import LOST, MIGRATING, UNASSIGNED
from kvorum.wire.uuid_text import uuid_to_text

RESERVED: Final = tuple(uuid_to_text(each) for each in (UNASSIGNED, LOST, MIGRATING))


def register(story: Story) -> None:
    """Register a broker, new or known, as it is, changed, or restarted."""
    broker = story.one_of(BROKERS)
    incarnation = story.incarnations.setdefault(broker, 1)
    if story.chance(0.4):
        incarnation = story.incarnations[broker] = incarnation + 1
    body = registration(
        broker,
        incarnation=incarnation,
        directories=story.random.randint(1, 3),
        rack=story.one_of(RACKS),
    )
    body["previousBrokerEpoch"] = story.one_of((-1, f"$epoch:{broker}", f"$epoch:{broker}-1"))
    story.brokers = sorted({*story.brokers, broker})
    story.add("BrokerRegistration", body)


def register_badly(story: Story) -> None:
    """Register with something that must be refused, or that looks odd."""
    broker = story.one_of((*BROKERS, 6))
    body = registration(broker, incarnation=story.random.randint(1, 3))
    for spoil in story.some(SPOILS)[: 1 + story.chance(0.2)]:
        spoil(body)
    story.add("BrokerRegistration", body)


def _listeners(*names: str, protocol: int = 0) -> list[Fields]:
    return [
        {"name": name, "host": "h", "port": 1 + port, "securityProtocol": protocol}
        for port, name in enumerate(names)
    ]


def _set(**fields: object) -> Callable[[Fields], None]:
    def spoil(body: Fields) -> None:
        body.update(fields)

    return spoil


def _feature_spoils() -> list[Callable[[Fields], None]]:
    ranges: list[Mapping[str, tuple[int, int]]] = [
        {name: each for name, each in FEATURES.items() if name != left_out} for left_out in FEATURES
    ]
    ranges += [{**FEATURES, name: (90, 99)} for name in FEATURES]
    ranges += [{**FEATURES, "metadata.version": (1, 29)}, {**FEATURES, "my.feature": (0, 3)}]
    ranges += [{**FEATURES, "my.feature": (1, 3)}, {}]
    return [_set(features=features(each)) for each in ranges]


SPOILS: Final[Sequence[Callable[[Fields], None]]] = (
    _set(clusterId="AAAAAAAAAAAAAAAAAAAAAg"),
    _set(isMigratingZkBroker=True),
    _set(logDirs=[]),
    _set(logDirs=[RESERVED[0]]),
    _set(logDirs=[directory(6), RESERVED[1]]),
    _set(logDirs=[RESERVED[2]]),
    _set(logDirs=[uuid_of(3, 1), uuid_of(3, 1)]),
    _set(logDirs=[directory(1)]),
    _set(logDirs=[directory(2), directory(1)]),
    _set(listeners=[]),
    _set(listeners=_listeners("A", "B", protocol=3)),
    _set(listeners=_listeners("A", "B", "C", protocol=1)),
    _set(listeners=_listeners("PLAINTEXT", "PLAINTEXT")),
    _set(rack=""),
    _set(incarnationId=RESERVED[0]),
    _set(brokerId=-2),
    _set(brokerId=3000),
    *_feature_spoils(),
)


def beat(story: Story) -> None:
    """Send a heartbeat that wants something, from a broker that is known or not."""
    broker = story.broker()
    wishes = story.one_of(({}, {}, {}, {"wantFence": True}, {"wantShutDown": True}, BOTH))
    fields: Fields = {
        **wishes,
        "currentMetadataOffset": _offset(story, broker),
        "cordonedLogDirs": story.one_of((None, None, [], [])),
    }
    if story.chance(0.05):
        fields["brokerEpoch"] = story.one_of((f"$epoch:{broker}+1", f"$epoch:{broker}-1", -1, 0))
    story.add("BrokerHeartbeat", heartbeat(broker, **fields))


BOTH: Final[Fields] = {"wantFence": True, "wantShutDown": True}


def _offset(story: Story, broker: int) -> int | str:
    choices: tuple[int | str, ...] = (f"$epoch:{broker}", f"$epoch:{broker}-1", "$end", "$end-1", 0)
    return story.one_of(choices) if story.chance(0.4) else INFINITE


def bring_back(story: Story) -> None:
    """Have a broker come into service, as far as it may."""
    story.add("BrokerHeartbeat", heartbeat(story.one_of(story.brokers or BROKERS)))


def shut_down(story: Story) -> None:
    """Have a broker ask to stop until it may, the others reading on meanwhile."""
    broker = story.one_of(story.brokers or BROKERS)
    others = [other for other in story.brokers if other != broker]
    story.add("BrokerHeartbeat", heartbeat(broker, wantShutDown=True))
    for _ in range(story.random.randint(1, 3)):
        for other in story.some(others, at_least=0):
            offset = story.one_of(("$end", "$end-1", "$end-2", f"$epoch:{other}"))
            story.add("BrokerHeartbeat", heartbeat(other, currentMetadataOffset=offset))
        story.add("BrokerHeartbeat", heartbeat(broker, wantShutDown=story.chance(0.8)))


def lose_directories(story: Story) -> None:
    if story.has_deleted:
        # Real Kafka fails over when a deleted topic had a replica there.
        return
    broker = story.broker()
    choices = [directory(broker, number) for number in range(3)] + [uuid_of(3, 3), RESERVED[0]]
    story.add("BrokerHeartbeat", heartbeat(broker, offlineLogDirs=story.some(choices)[:2]))


def cordon(story: Story) -> None:
    broker = story.broker()
    choices = [directory(broker, number) for number in range(2)] + [uuid_of(3, 3)]
    story.add("BrokerHeartbeat", heartbeat(broker, cordonedLogDirs=story.some(choices, at_least=0)))


def unregister(story: Story) -> None:
    broker = story.broker()
    if broker in story.brokers and len(story.brokers) > 2:
        story.brokers.remove(broker)
    story.add("UnregisterBroker", {"brokerId": broker})


def allocate_producer_ids(story: Story) -> None:
    """Ask for producer ids, with the right epoch or another."""
    broker = story.broker()
    epoch = story.one_of((f"$epoch:{broker}", f"$epoch:{broker}", f"$epoch:{broker}+1", -1))
    story.add("AllocateProducerIds", {"brokerId": broker, "brokerEpoch": epoch})


def begin(story: Story) -> None:
    """Have some brokers in service, with topics on them."""
    for broker in sorted(story.some(BROKERS, at_least=1)):
        story.start_broker(broker)
    for _ in range(story.random.randint(0, 2)):
        topic_scripts.create(story)


CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    (5, register),
    (5, register_badly),
    (6, beat),
    (5, bring_back),
    (3, shut_down),
    (2, lose_directories),
    (2, cordon),
    (2, unregister),
    (1, allocate_producer_ids),
    (2, topic_scripts.create),
)
