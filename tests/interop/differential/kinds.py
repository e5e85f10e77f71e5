"""All kinds of generated scripts, by name."""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
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
from tests.interop.differential.story import script_of

KINDS: Final[Mapping[str, Callable[[int], Script]]] = MappingProxyType(
    {
        "topics": lambda seed: script_of(
            "topics", seed, topic_scripts.CHAPTERS, begin=topic_scripts.begin
        ),
        "brokers": lambda seed: script_of(
            "brokers", seed, broker_scripts.CHAPTERS, begin=broker_scripts.begin
        ),
        "partitions": lambda seed: script_of(
            "partitions", seed, partition_scripts.CHAPTERS, begin=partition_scripts.begin
        ),
        "mixed": lambda seed: script_of(
            "mixed", seed, partition_scripts.MIXED_CHAPTERS, begin=partition_scripts.begin
        ),
        "configs": lambda seed: script_of(
            "configs", seed, config_scripts.CHAPTERS, begin=config_scripts.begin
        ),
        "values": lambda seed: config_scripts.all_values_of_a_key("values", seed),
        "features": lambda seed: script_of(
            "features", seed, feature_scripts.CHAPTERS, begin=feature_scripts.begin
        ),
        "quotas": lambda seed: script_of(
            "quotas", seed, quota_scripts.CHAPTERS, begin=quota_scripts.begin
        ),
    }
)
"""From the name of a kind to the script of a seed."""


QUICK_SCRIPTS: Final = 72


SCRIPTS: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SCRIPTS", QUICK_SCRIPTS))


FIRST_SEED: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SEED", "0"))
