"""Properties that the user of embedded nodes gives in Python, checked and as texts."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeAlias, cast

from kvorum.metadata.config_definitions import topic_synonym
from kvorum.node.config import ConfigError
from kvorum.node.config.known import KEYS_IN_USE, unknown
from kvorum.node.config.values import NODE_CONFIGS

OverrideValue: TypeAlias = str | int | float | bool
POLICY_KEYS = frozenset({"alter.config.policy.class.name", "create.topic.policy.class.name"})
"""The keys whose classes receive all properties, and may have some of their own."""

DECIDED_KEYS = frozenset(
    {
        *("node.id", "broker.id", "process.roles"),
        *("listeners", "controller.listener.names"),
        *("controller.quorum.bootstrap.servers", "controller.quorum.voters"),
    }
)
"""The keys that a cluster decides for each of its nodes."""


def override_texts(overrides: Mapping[str, OverrideValue]) -> dict[str, str]:
    """Return the texts for a properties file; a boolean is written as Java writes it.

    Raises ConfigError for a key that the cluster decides, and for one that no node knows, with the
    nearest known one, unless the overrides name a policy: the key may be its own. Raises TypeError
    where they are not a mapping, and for a key or a value of another type.
    """
    texts = texts_of(overrides)
    if decided := sorted(DECIDED_KEYS & texts.keys()):
        raise ConfigError(
            f"{', '.join(decided)} cannot be overridden: the cluster decides that for each node"
        )
    if not POLICY_KEYS.isdisjoint(texts):
        return texts
    if names := unknown(texts):
        raise ConfigError(f"unknown configuration {'; '.join(map(_described, names))}")
    return texts


def texts_of(values: Mapping[str, OverrideValue]) -> dict[str, str]:
    """Return values as texts; raises TypeError for a key or a value of another type."""
    _check_keys(values)
    return {key: _text(key, value) for key, value in values.items()}


def _check_keys(values: object) -> None:
    if not isinstance(values, Mapping):
        raise TypeError(f"{values!r} is no mapping of keys to values")
    for key in cast("Mapping[object, object]", values):
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} is no string")


def _text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError(f"{key} is {value!r}: a string, a number or a boolean is needed")


def _described(name: str) -> str:
    near = nearest_key(name)
    return f"key '{name}'" + ("" if near is None else f", did you mean '{near}'?")


def nearest_key(name: str) -> str | None:
    """Return the key of a node that a misspelled one, or one of a topic, comes nearest to."""
    written = name.strip().lower().replace("_", ".")
    known = (topic_synonym(written), written)
    containing = sorted((key for key in KEYS_IN_USE if written in key), key=len)
    similar = get_close_matches(written, sorted(KEYS_IN_USE), n=1, cutoff=0.8)
    similar += get_close_matches(written, sorted(NODE_CONFIGS), n=1)
    candidates = (*filter(NODE_CONFIGS.__contains__, known), *containing, *similar)
    return next(iter(candidates), None)
