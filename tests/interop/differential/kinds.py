"""All kinds of generated scripts, by name."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from tests.interop.differential import (
    broker_scripts,
    config_scripts,
    feature_scripts,
    partition_scripts,
    quota_scripts,
    topic_scripts,
)
from tests.interop.differential.script import Script
from tests.interop.differential.story import Chapter, script_of

_CHAPTERS: Final[Mapping[str, tuple[Sequence[tuple[int, Chapter]], Chapter]]] = {
    "topics": (topic_scripts.CHAPTERS, topic_scripts.begin),
    "brokers": (broker_scripts.CHAPTERS, broker_scripts.begin),
    "partitions": (partition_scripts.CHAPTERS, partition_scripts.begin),
    "mixed": (partition_scripts.MIXED_CHAPTERS, partition_scripts.begin),
    "configs": (config_scripts.CHAPTERS, config_scripts.begin),
    "features": (feature_scripts.CHAPTERS, feature_scripts.begin),
    "quotas": (quota_scripts.CHAPTERS, quota_scripts.begin),
}
KINDS: Final[Mapping[str, Callable[[int], Script]]] = {
    **{
        kind: partial(script_of, kind, chapters=chapters, begin=begin)
        for kind, (chapters, begin) in _CHAPTERS.items()
    },
    "values": partial(config_scripts.all_values_of_a_key, "values"),
}
"""From the name of a kind to the script of a seed."""
QUICK_SCRIPTS: Final = 72
SCRIPTS: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SCRIPTS", QUICK_SCRIPTS))
FIRST_SEED: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SEED", "0"))
