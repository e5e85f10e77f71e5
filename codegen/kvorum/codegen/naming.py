"""The conversion of Kafka's names to Python's."""

import keyword
import re

from kvorum.codegen.model import MessageSpec

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return `leader_epoch` for `LeaderEpoch`."""
    found = _WORD.sub("_", name).lower()
    return f"{found}_" if keyword.iskeyword(found) else found


def json_name(name: str) -> str:
    """Return the name in Kafka's JSON form and its messages: the first letter in lower case."""
    return name[:1].lower() + name[1:]


def class_name(message: str, struct: str) -> str:
    """Return the class of a struct: unique, because request and response share a module."""
    return struct if struct.startswith(message) else message + struct


def module_name(spec: MessageSpec) -> str:
    """Return the name of the module: request and response share one."""
    name = spec.name
    if spec.kind in {"request", "response"}:
        name = name.removesuffix("Request").removesuffix("Response")
    return snake_case(name)
