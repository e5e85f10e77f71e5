"""Scripts about brokers that fall silent, and what their next incarnation may do."""

from collections.abc import Sequence
from typing import Final

from tests.interop.differential import broker_scripts, partition_scripts, topic_scripts
from tests.interop.differential.script import Script, Silence, heartbeat, registration
from tests.interop.differential.story import BROKERS, Chapter, Story, script_of

# Long enough for all the steps between two silences.
SESSION_TIMEOUT_MS: Final = 3_000
SETTINGS: Final = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS)}


def fall_silent(story: Story) -> None:
    """Let a broker say nothing, and perhaps take up again where it was.

    Only one: of several whose sessions are over real Kafka takes the one that its hash table
    yields first, and ours the one that was heard of longest ago.
    """
    silent = story.one_of(story.brokers)
    for broker in story.brokers:
        story.add("BrokerHeartbeat", heartbeat(broker))
    if story.chance(0.3):
        # One that has stopped is fenced once more when its session ends.
        story.add("BrokerHeartbeat", heartbeat(silent, wantFence=True, wantShutDown=True))
    alive = tuple(broker for broker in story.brokers if broker != silent)
    story.steps.append(Silence((silent,), alive))
    if story.chance(0.8):
        _return(story, silent)


def _return(story: Story, broker: int) -> None:
    """Have a broker register again, as the same incarnation or another one, and serve."""
    if story.chance(0.7):
        story.incarnations[broker] += 1
    body = registration(broker, incarnation=story.incarnations[broker])
    body["previousBrokerEpoch"] = story.one_of((-1, f"$epoch:{broker}", f"$epoch:{broker}-1"))
    story.add("BrokerRegistration", body)
    story.add("BrokerHeartbeat", heartbeat(broker))


def begin(story: Story) -> None:
    """Have brokers in service with topics on them, with ELR or without."""
    partition_scripts.switch_elr(story)
    for broker in sorted(story.some(BROKERS, at_least=3)):
        story.start_broker(broker)
    for _ in range(2):
        topic_scripts.create(story)
    fall_silent(story)


CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    (2, fall_silent),
    (4, partition_scripts.alter),
    (3, partition_scripts.reassign),
    (3, broker_scripts.register),
    (2, broker_scripts.bring_back),
    (2, topic_scripts.create),
)


def silence_script(seed: int) -> Script:
    """Return the script of a seed; it takes a session's length for each silence."""
    return script_of("silence", seed, CHAPTERS, begin=begin, length=(3, 7))
