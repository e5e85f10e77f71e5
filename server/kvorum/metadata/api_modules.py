"""The value of an API, and how it is found: in the module named after the API.

A package that holds APIs has one module for each, called as the generated message module is:
`create_topics` for CreateTopics. The listing of the package is the list of what there is; a module
is imported with the first request for its API: all of them together cost some 50 ms, beside the 450
that a start takes, and ten times as much where nothing is compiled yet. A module defines exactly
one value of the package's class, which is found by its type: no name is looked up in a string. A
module with none, with two, or with the value of another API is an error. So the usages of the class
are its APIs, and from a value every function of the API is one step away, checked for its types.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType, ModuleType
from typing import Generic, TypeVar

from kvorum.metadata.permission import Permission
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.primitives import Message

Request_co = TypeVar("Request_co", bound=Message, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api(Generic[Request_co]):
    """The facts of an API that it has whatever answers it.

    - `request`: the class of its request.
    - `permission`: the permission on the cluster that the whole request needs.
    """

    request: type[Request_co]
    permission: Permission

    @property
    def key(self) -> ApiKey:
        """The API, by the class of its request."""
        assert self.request.API_KEY is not None
        return ApiKey(self.request.API_KEY)


Value = TypeVar("Value", bound=Api[Message])


def find_apis(package: ModuleType, kind: type[Value]) -> Mapping[ApiKey, Callable[[], Value]]:
    """Return, for each API that `package` has a module for, what loads its value of `kind`."""
    keys = {spec.module: spec.key for spec in API_SPECS.values()}
    prefix = f"{package.__name__}."
    return MappingProxyType(
        {
            keys[name]: cache(partial(_load, found.name, kind, keys[name]))
            for found in pkgutil.iter_modules(package.__path__, prefix)
            if (name := found.name.removeprefix(prefix)) in keys
        }
    )


def _load(module_name: str, kind: type[Value], key: ApiKey) -> Value:
    """Return the only value of `kind` in a module; raises TypeError where that is not so."""
    module = importlib.import_module(module_name)
    found = [value for value in vars(module).values() if isinstance(value, kind)]
    if [value.key for value in found] != [key]:
        raise TypeError(f"{module_name} needs one {kind.__name__}, for {key.name}; it has {found}")
    return found[0]
