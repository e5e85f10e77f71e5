"""The operator's policies of a controller: found by name, created, configured, and closed."""

import importlib
import logging
from collections.abc import Mapping
from typing import NamedTuple, cast

from kvorum.controller.policies import AlterConfigPolicy, Closeable, Configurable, CreateTopicPolicy
from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError

CREATE_TOPIC_KEY = "create.topic.policy.class.name"
ALTER_CONFIG_KEY = "alter.config.policy.class.name"
_log = logging.getLogger(__name__)


class NodePolicies(NamedTuple):
    """The policies of one node, None for a policy that is not configured."""

    create_topic: CreateTopicPolicy | None = None
    alter_config: AlterConfigPolicy | None = None

    def close(self) -> None:
        """Close the policies that can be closed; errors that they raise are logged."""
        for policy in (self.create_topic, self.alter_config):
            _close(policy)


def load_policies(config: NodeConfig) -> NodePolicies:
    """Return the policies that `config` names; raises NodeStartError if one cannot be created."""
    names = config.policies
    create_topic = alter_config = None
    if names.create_topic is not None:
        loaded = _load(CREATE_TOPIC_KEY, names.create_topic, config.texts)
        create_topic = cast("CreateTopicPolicy", loaded)
    try:
        if names.alter_config is not None:
            loaded = _load(ALTER_CONFIG_KEY, names.alter_config, config.texts)
            alter_config = cast("AlterConfigPolicy", loaded)
    except NodeStartError:
        _close(create_topic)
        raise
    return NodePolicies(create_topic, alter_config)


def _load(key: str, name: str, texts: Mapping[str, str]) -> object:
    """Return a new, configured policy of the class called `name`."""
    found = _find(key, name)
    if not isinstance(found, type):
        raise NodeStartError(f"{key}: {name} is not a class")
    try:
        policy: object = found()
    except Exception as error:
        raise NodeStartError(f"{key}: {name}() failed: {_described(error)}") from error
    if not callable(getattr(policy, "validate", None)):
        raise NodeStartError(
            f"{key}: {name} has no method validate(request); see kvorum.controller.policies"
        )
    if isinstance(policy, Configurable):
        try:
            policy.configure(texts)
        except Exception as error:
            _close(policy)
            raise NodeStartError(f"{key}: {name}.configure failed: {_described(error)}") from error
    return policy


def _find(key: str, name: str) -> object:
    """Return the object that ``package.module.Class`` or ``package.module:Class`` names."""
    module_name, separator, attribute = name.partition(":")
    if not separator:
        module_name, _, attribute = name.rpartition(".")
    if not module_name or not attribute:
        raise NodeStartError(
            f"{key}: '{name}' names no Python class; write package.module.Class, and see that the "
            "module can be imported (PYTHONPATH)"
        )
    try:
        found: object = importlib.import_module(module_name)
    except Exception as error:
        raise NodeStartError(
            f"{key}: module {module_name} of {name} cannot be imported ({_described(error)}); "
            "is it in the environment or on PYTHONPATH?"
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NodeStartError(f"{key}: module {module_name} has no {attribute}")
        found = getattr(found, part)
    return found


def _close(policy: object) -> None:
    if not isinstance(policy, Closeable):
        return
    try:
        policy.close()
    except Exception:  # noqa: BLE001 - the code is the operator's, and the node stops anyway
        _log.exception("Closing the policy %s failed", type(policy).__qualname__)


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
