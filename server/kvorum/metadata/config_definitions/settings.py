"""The reader of settings classes, whose fields name the keys that they are read from.

``Annotated[int, "fetch.max.bytes"]`` is a field with the value of that key. Of several keys the
first counts whose value is not missing, empty or 0. A function after the keys receives the values
of all of them and returns the field's. A field of another settings class is read in the same way.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Annotated, NamedTuple, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from kvorum.metadata.config_definitions.validators import ConfigValue

ValueOf: TypeAlias = Callable[[str], ConfigValue]
"""Returns the value of a key, None for one that has no value."""
Settings = TypeVar("Settings")


class KeyedField(NamedTuple):
    """The keys of a field, and the function that reads it from their values."""

    keys: frozenset[str]
    read: Callable[[ValueOf], object]


@cache
def keyed_fields(settings: type) -> Mapping[str, KeyedField]:
    """Return the fields that are read; the others have defaults or are given."""
    found: dict[str, KeyedField] = {}
    for name, hint in get_type_hints(settings, include_extras=True).items():
        if get_origin(hint) is Annotated:
            _, *keys = get_args(hint)
            convert = keys.pop() if callable(keys[-1]) else _first
            found[name] = KeyedField(frozenset(keys), partial(_read_field, keys, convert))
        elif isinstance(hint, type) and _has_fields(hint) and keys_of(hint):
            found[name] = KeyedField(keys_of(hint), partial(read_settings, hint))
    return MappingProxyType(found)


def _has_fields(kind: type) -> bool:
    return is_dataclass(kind) or issubclass(kind, tuple)


def _read_field(keys: list[str], convert: Callable[..., object], value_of: ValueOf) -> object:
    return convert(*map(value_of, keys))


def _first(*values: object) -> object:
    return next(filter(None, values), values[-1])


def keys_of(settings: type) -> frozenset[str]:
    """Return the keys that a settings class is read from."""
    return frozenset[str]().union(*(field.keys for field in keyed_fields(settings).values()))


def read_settings(settings: type[Settings], value_of: ValueOf, **given: object) -> Settings:
    """Build a settings class from the values of its keys; fields in `given` are not read."""
    kind: type = settings
    build: Callable[..., Settings] = settings
    keyed = keyed_fields(kind)
    read = {name: each.read(value_of) for name, each in keyed.items() if name not in given}
    return build(**read, **given)


def updated_settings(settings: Settings, value_of: ValueOf, keys: Collection[str]) -> Settings:
    """Return a dataclass of settings whose fields that come from some of `keys` are read again."""
    kind: type = type(settings)
    read = keyed_fields(kind)
    names = (each.name for each in fields(kind))
    kept = {
        name: getattr(settings, name)
        for name in names
        if name not in read or read[name].keys.isdisjoint(keys)
    }
    return read_settings(type(settings), value_of, **kept)
