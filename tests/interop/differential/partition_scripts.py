"""Scripts about partitions: AlterPartition, reassignments, elections, directories, good and bad."""

from collections.abc import Sequence
from typing import Final

from tests.interop.differential import broker_scripts, topic_scripts
from tests.interop.differential.broker_scripts import RESERVED
from tests.interop.differential.script import (
    TIMEOUT_MS,
    Fields,
    directory,
    feature_level,
    heartbeat,
)
from tests.interop.differential.story import BROKERS, UNKNOWN_BROKER, Chapter, Story
from tests.interop.differential.view import uuid_of

ELR: Final = "eligible.leader.replicas.version"
ISRS: Final = ("isr", "shrunk", "shrunk", "alone", "grown", "grown", "full", "full", "full")
UPGRADE, SAFE_DOWNGRADE = 1, 2


def alter(story: Story) -> None:
    """Change the ISR of a partition or two as their leader would."""
    name = story.topic()
    index = story.partition(name)
    body = _alteration(story, name, index)
    if story.chance(0.15):
        other = story.topic()
        body["topics"].append(_isr_change(story, other, story.partition(other)))
    if story.chance(0.08):
        sender = story.broker()
        body |= {"brokerId": sender, "brokerEpoch": f"$epoch:{sender}"}
    if story.chance(0.04):
        body["brokerEpoch"] = story.one_of((-1, 0, f"$leader_broker_epoch:{name}:{index}+1"))
    story.add("AlterPartition", body)


def _alteration(story: Story, name: str, index: int) -> Fields:
    """Draw what the leader of a partition asks for."""
    return {
        "brokerId": f"$leader:{name}:{index}",
        "brokerEpoch": f"$leader_broker_epoch:{name}:{index}",
        "topics": [_isr_change(story, name, index)],
    }


def _isr_change(story: Story, name: str, index: int) -> Fields:
    where = f"{name}:{index}"
    isr = story.one_of(ISRS)
    change: Fields = {
        "partitionIndex": index,
        "leaderEpoch": f"$leader_epoch:{where}",
        "newIsr": f"${isr}:{where}",
        "newIsrWithEpochs": f"${isr}_with_epochs:{where}",
        "leaderRecoveryState": 0,
        "partitionEpoch": f"$partition_epoch:{where}",
    }
    if story.chance(0.25):
        change |= _spoilt(story, where)
    return {"topicId": f"$topic:{name}", "partitions": [change]}


def _spoilt(story: Story, where: str) -> Fields:
    brokers = story.some((*BROKERS, UNKNOWN_BROKER), at_least=0)
    with_epochs = [{"brokerId": each, "brokerEpoch": f"$epoch:{each}"} for each in brokers]
    wrong_epochs = [{"brokerId": each, "brokerEpoch": f"$epoch:{each}+1"} for each in brokers]
    choices: tuple[Fields, ...] = (
        {"leaderEpoch": f"$leader_epoch:{where}{story.one_of(('+1', '-1'))}"},
        {"partitionEpoch": f"$partition_epoch:{where}{story.one_of(('+1', '-1'))}"},
        {"leaderRecoveryState": story.one_of((1, 1, 0))},
        {"newIsr": brokers, "newIsrWithEpochs": with_epochs},
        {"newIsr": brokers * 2, "newIsrWithEpochs": with_epochs * 2},
        {"newIsr": [], "newIsrWithEpochs": []},
        {"newIsr": brokers, "newIsrWithEpochs": wrong_epochs},
    )
    return story.one_of(choices)


def reassign(story: Story) -> None:
    """Move partitions, or take that back; none of them twice (see `test_deviations`)."""
    name = story.topic()
    rows = [_move(story, name) for _ in range(story.random.randint(1, 3))]
    rows = list({row["partitionIndex"]: row for row in rows}.values())
    topics = [{"name": name, "partitions": rows}]
    if story.chance(0.2):
        other = story.topic()
        if other != name:
            topics.append({"name": other, "partitions": [_move(story, other)]})
    body = {"timeoutMs": TIMEOUT_MS, "topics": topics}
    if story.chance(0.2):
        body["allowReplicationFactorChange"] = False
    story.add("AlterPartitionReassignments", body)
    if story.chance(0.3):
        list_reassignments(story)


def _move(story: Story, name: str) -> Fields:
    target: list[int] | None = story.replicas()
    if story.chance(0.2):
        target = None
    elif story.chance(0.1):
        target = story.one_of(([], [1, 1], [1, UNKNOWN_BROKER], [-1], [UNKNOWN_BROKER]))
    return {"partitionIndex": story.partition(name), "replicas": target}


def complete(story: Story) -> None:
    """Move a partition and have its leader take everybody in."""
    name = story.topic()
    index = story.partition(name)
    row = {"partitionIndex": index, "replicas": story.replicas()}
    topics = [{"name": name, "partitions": [row]}]
    story.add("AlterPartitionReassignments", {"timeoutMs": TIMEOUT_MS, "topics": topics})
    for _ in range(story.random.randint(1, 3)):
        story.add("AlterPartition", _alteration(story, name, index))


def list_reassignments(story: Story) -> None:
    name = story.topic()
    some = [{"name": name, "partitionIndexes": [0, 1, story.partition(name)]}]
    topics = story.one_of((None, some, []))
    story.add("ListPartitionReassignments", {"timeoutMs": TIMEOUT_MS, "topics": topics})


def elect(story: Story) -> None:
    """Elect leaders, preferred or unclean, of some partitions or of all."""
    topics = None
    if story.chance(0.8):
        names = {story.topic() for _ in range(story.random.randint(1, 3))}
        topics = [
            {"topic": name, "partitions": [story.partition(name) for _ in range(2)]}
            for name in sorted(names)
        ]
    kind = 2 if story.chance(0.03) else story.random.randrange(2)
    body = {"electionType": kind, "topicPartitions": topics, "timeoutMs": TIMEOUT_MS}
    story.add("ElectLeaders", body)


def assign_directories(story: Story) -> None:
    """Tell in which directories a broker keeps its replicas."""
    broker = story.broker()
    name = story.topic()
    other = story.topic()
    choices = [directory(broker, number) for number in range(3)]
    if story.chance(0.2):
        choices += [*RESERVED, uuid_of(3, 3), directory(1)]
    rows = [
        {
            "id": story.one_of(choices),
            "topics": [
                {
                    "topicId": f"$topic:{each}",
                    "partitions": [{"partitionIndex": story.partition(each)} for _ in range(2)],
                }
                for each in story.some((name, other), at_least=1)
            ],
        }
        for _ in range(story.random.randint(1, 2))
    ]
    epoch = f"$epoch:{broker}+1" if story.chance(0.05) else f"$epoch:{broker}"
    body = {"brokerId": broker, "brokerEpoch": epoch, "directories": rows}
    story.add("AssignReplicasToDirs", body)


def fence(story: Story) -> None:
    story.add("BrokerHeartbeat", heartbeat(story.one_of(story.brokers), wantFence=True))


def switch_elr(story: Story) -> None:
    _set_elr(story, is_on=story.chance(0.5))


def _set_elr(story: Story, *, is_on: bool) -> None:
    kind = UPGRADE if is_on else SAFE_DOWNGRADE
    story.steps.append(feature_level(ELR, int(is_on), upgrade_type=kind))


def begin(story: Story) -> None:
    """Have brokers in service with topics on them, with ELR or without."""
    _set_elr(story, is_on=story.chance(0.6))
    for broker in sorted(story.some(BROKERS, at_least=3)):
        story.start_broker(broker)
    for _ in range(story.random.randint(1, 3)):
        topic_scripts.create(story)


CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    (8, alter),
    (5, reassign),
    (4, complete),
    (2, list_reassignments),
    (4, elect),
    (2, assign_directories),
    (4, fence),
    (4, broker_scripts.bring_back),
    (1, topic_scripts.create),
)
MIXED_CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    *topic_scripts.DETERMINED_CHAPTERS,
    *broker_scripts.CHAPTERS,
    *CHAPTERS,
    (2, switch_elr),
)
