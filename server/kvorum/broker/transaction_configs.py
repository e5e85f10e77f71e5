"""The broker's settings about transactions that may change while it runs."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.config_definitions import BROKER_CONFIGS, InvalidConfigError, parse_value
from kvorum.metadata.effective_configs import BrokerConfigLayers

VERIFICATION_KEY: Final = "transaction.partition.verification.enable"


def is_verification_enabled(layers: BrokerConfigLayers) -> bool:
    """Return whether a first batch has to be verified; a value that is none means that it has."""
    definition = BROKER_CONFIGS[VERIFICATION_KEY]
    for values in (layers.node, layers.cluster, layers.static):
        if VERIFICATION_KEY in values:
            try:
                return parse_value(definition, values[VERIFICATION_KEY]) is not False
            except InvalidConfigError:
                return True
    return True
