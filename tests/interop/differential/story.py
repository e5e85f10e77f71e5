"""The knowledge of a generator while it makes a script: a guess at the cluster, and chance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias, TypeVar

from tests.interop.differential.script import API_KEYS, AnyStep, Script, Step, started

from kvorum.wire.apis import request_class

Choice = TypeVar("Choice")
BROKERS = (1, 2, 3, 4, 5)
RACKS = (None, None, "r1", "r2")
UNKNOWN_BROKER = 77
NO_TOPIC = "nowhere"


@dataclass
class Story:
    """A script in the making.

    `topics` are the partition counts of the topics that probably exist, `brokers` those that are
    probably registered. Nothing depends on their being right: both sides get the same requests.
    """

    random: Random
    steps: list[AnyStep] = field(default_factory=list[AnyStep])
    topics: dict[str, int] = field(default_factory=dict[str, int])
    brokers: list[int] = field(default_factory=list[int])
    incarnations: dict[int, int] = field(default_factory=dict[int, int])
    names_made: int = 0
    has_deleted: bool = False

    def add(self, api: str, body: dict[str, Any], *, is_placed: bool = False) -> None:
        """Add a request, in a version drawn by chance, the newest most often."""
        kind = request_class(API_KEYS[api])
        newest = kind.MAX_VERSION
        version = newest if self.chance(0.5) else self.random.randint(kind.MIN_VERSION, newest)
        self.steps.append(Step(api, version, body, is_placed=is_placed))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        return self.random.choice(choices)

    def some(self, choices: Sequence[Choice], *, at_least: int = 1) -> list[Choice]:
        """Draw several values, each once, in an order drawn by chance."""
        low = min(at_least, len(choices))
        return self.random.sample(choices, self.random.randint(low, len(choices)))

    def new_name(self) -> str:
        self.names_made += 1
        return f"t{self.names_made}"

    def topic(self) -> str:
        """Draw a topic, seldom one that never was."""
        if not self.topics or self.chance(0.04):
            return NO_TOPIC
        return self.one_of(list(self.topics))

    def partition(self, topic: str) -> int:
        """Draw a partition of a topic, seldom one that is not there."""
        count = self.topics.get(topic, 1)
        return count + 3 if self.chance(0.04) else self.random.randrange(count)

    def broker(self) -> int:
        """Draw a broker, seldom one that never was."""
        if self.chance(0.04):
            return UNKNOWN_BROKER
        return self.one_of(BROKERS)

    def replicas(self, *, at_least: int = 1) -> list[int]:
        """Draw replicas for a partition, of the brokers that are probably there."""
        return self.some(self.brokers or BROKERS, at_least=at_least)[:4]

    def start_broker(self, broker: int) -> None:
        self.brokers = sorted({*self.brokers, broker})
        self.steps.extend(
            started(
                broker,
                incarnation=self.incarnations.setdefault(broker, 1),
                directories=self.random.randint(1, 2),
                rack=self.one_of(RACKS),
            )
        )


Chapter: TypeAlias = Callable[[Story], None]
"""Adds a step, or a few that belong together, to a story."""


def script_of(
    kind: str,
    seed: int,
    chapters: Sequence[tuple[int, Chapter]],
    *,
    begin: Chapter,
    length: tuple[int, int] = (12, 30),
) -> Script:
    """Return the script of a seed: a beginning, then chapters drawn by their weights."""
    random = Random(f"{kind}-{seed}")
    story = Story(random)
    begin(story)
    weights = [weight for weight, _ in chapters]
    for _, chapter in random.choices(chapters, weights, k=random.randint(*length)):
        chapter(story)
    return Script(kind, seed, tuple(story.steps))
