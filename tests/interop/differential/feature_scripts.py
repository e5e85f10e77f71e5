"""Scripts about features: every feature up, down safely and unsafely, tried, good and bad."""

from collections.abc import Sequence
from typing import Final

from tests.interop.differential import partition_scripts
from tests.interop.differential.config_scripts import alter_some, replace_all
from tests.interop.differential.quota_scripts import allocate_ids, alter_credentials, alter_quotas
from tests.interop.differential.script import FEATURES, TIMEOUT_MS, Fields, features, registration
from tests.interop.differential.story import Chapter, Story
from tests.interop.differential.view import uuid_of

METADATA_VERSION: Final = "metadata.version"
NAMES: Final = tuple(FEATURES)
LOGGED_NAMES: Final = tuple(name for name in NAMES if name != "kraft.version")
STRANGE_NAMES: Final = ("no.such.version", "", "Metadata.Version", "x" * 300)
UPGRADE_TYPES: Final = (1, 1, 1, 2, 2, 3, 0, 4, -1)
OTHER_CONTROLLER: Final = 3001


def begin(story: Story) -> None:
    if story.chance(0.7):
        for broker in (1, 2):
            story.start_broker(broker)


def level_of(story: Story, name: str) -> int:
    """Draw a level, seldom one that is out of range."""
    if name == METADATA_VERSION:
        return story.one_of((7, 8, 14, 15, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 6, 0, -1))
    return story.one_of((0, 1, 0, 1, 2, 3, -1, 32767, -32768))


def update(story: Story, *, name: str | None = None) -> Fields:
    drawn = name or story.one_of((*NAMES, *NAMES, METADATA_VERSION, *STRANGE_NAMES[:1]))
    return {
        "feature": drawn,
        "maxVersionLevel": level_of(story, drawn),
        "allowDowngrade": story.chance(0.3),
        "upgradeType": story.one_of(UPGRADE_TYPES),
    }


def as_it_is(name: str) -> Fields:
    """Return the update to the level there is, which is always accepted."""
    return {"feature": name, "maxVersionLevel": f"$level:{name}", "upgradeType": 1}


def update_features(story: Story) -> None:
    """Change a feature or a few, perhaps with others that stay as they are."""
    wanted = [update(story) for _ in range(story.random.choice((1, 1, 1, 1, 2, 3)))]
    if story.chance(0.05):
        wanted.append(update(story, name=story.one_of(STRANGE_NAMES)))
    wanted.extend(as_it_is(name) for name in LOGGED_NAMES if story.chance(0.08))
    if story.chance(0.03):
        wanted.clear()
    body = {"timeoutMs": TIMEOUT_MS, "featureUpdates": wanted, "validateOnly": story.chance(0.25)}
    story.add("UpdateFeatures", body)


def register_narrow_broker(story: Story) -> None:
    """Register a broker that does not support everything, and perhaps take it away again."""
    broker = story.one_of((3, 4))
    name = story.one_of(NAMES)
    low, high = FEATURES[name]
    narrow = story.one_of(((low, high - 1), (low + 1, high), (0, 0), (low, low)))
    narrowed = {**FEATURES, name: narrow}
    if story.chance(0.3):
        narrowed.pop(name)
    story.add("BrokerRegistration", {**registration(broker), "features": features(narrowed)})
    if story.chance(0.6):
        story.add("UnregisterBroker", {"brokerId": broker})


def register_controller(story: Story) -> None:
    """Register a second controller that supports everything, or less."""
    ranges = dict(FEATURES)
    if story.chance(0.6):
        name = story.one_of(NAMES)
        low, high = ranges.pop(name)
        if story.chance(0.7):
            ranges[name] = story.one_of(((low, high - 1), (low, low), (low, high + 1), (3, 2)))
    body: Fields = {
        "controllerId": OTHER_CONTROLLER,
        "incarnationId": uuid_of(8, story.random.randint(1, 3)),
        "zkMigrationReady": story.chance(0.1),
        "listeners": [
            {"name": name, "host": "elsewhere", "port": 9093, "securityProtocol": 0}
            for name in story.one_of((("CONTROLLER",), (), ("CONTROLLER", "OTHER"), ("X",)))
        ],
        "features": features(ranges),
    }
    story.add("ControllerRegistration", body)


def unregister_controller(story: Story) -> None:
    """Forget the second controller, an unknown one, or the active one."""
    story.add("UnregisterController", {"controllerId": story.one_of((OTHER_CONTROLLER, 99, 1))})


def describe_cluster(story: Story) -> None:
    story.add("DescribeCluster", {"endpointType": story.one_of((2, 2, 2, 1, 0, 3, -1))})


CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    (14, update_features),
    (2, register_narrow_broker),
    (2, register_controller),
    (1, unregister_controller),
    (1, describe_cluster),
)
LEVEL_CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    *partition_scripts.MIXED_CHAPTERS,
    (4, alter_some),
    (2, replace_all),
    (2, alter_quotas),
    (4, alter_credentials),
    (2, allocate_ids),
    (3, update_features),
    (1, register_narrow_broker),
    (2, register_controller),
    (2, describe_cluster),
)
"""The requests to a cluster at some metadata.version: everything that a level may gate."""
