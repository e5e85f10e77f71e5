"""An API: its value, the permission that it needs, and the error that refuses a request.

A package that holds APIs has one module for each, called as the generated message module is:
`create_topics` for CreateTopics. The listing of the package is the list of what there is; a module
is imported with the first request for its API: all of them together cost some 50 ms, beside the 450
that a start takes, and ten times as much where nothing is compiled yet. A module defines exactly
one value of the package's class, which is found by its type: no name is looked up in a string. A
module with none, with two, or with the value of another API is an error. So the usages of the class
are its APIs, and from a value every function of the API is one step away, checked for its types.

A refusal takes the request, the error and the version of the request, and returns the response
that Kafka's `AbstractRequest.getErrorResponse` makes. Where the form has a place for the error of
the whole, one of the functions below makes the refusal; other APIs have their own, which gives the
error to every part.

It is the only way to refuse: for a missing permission, an error of the handler, a defect, and
NOT_CONTROLLER. A connection is closed only where Kafka closes it: after bytes that are not a
request, and after a version that is not served.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from functools import cache, partial
from types import MappingProxyType, ModuleType
from typing import Generic, Protocol, TypeAlias, TypeVar

from kvorum.metadata.acl_codes import AclOperation
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message

Request_co = TypeVar("Request_co", bound=Message, covariant=True)

Refused = TypeVar("Refused")


@unique
class NoClusterPermission(Enum):
    """Why a whole request needs no operation on the cluster: stated, so that none is forgotten."""

    PER_RESOURCE = "the resources that the request names are looked at one by one"
    BY_CONTROLLER = "the active controller looks at the request, which a broker passes on"
    BY_HANDLER = "what answers asks for the permission itself, after other checks"
    NONE = "everybody may ask"


PER_RESOURCE = NoClusterPermission.PER_RESOURCE
BY_CONTROLLER = NoClusterPermission.BY_CONTROLLER
BY_HANDLER = NoClusterPermission.BY_HANDLER
NONE = NoClusterPermission.NONE

Permission: TypeAlias = AclOperation | NoClusterPermission
"""The operation that a client needs on the cluster, or why it needs none."""


class RequestError(Exception):
    """A refusal with Kafka's error code and, where Kafka sends one, its message.

    `message` is None where Kafka answers with the bare code.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.default_message)
        self.code = code
        self.message = message

    @classmethod
    def with_default_message(cls, code: ErrorCode) -> RequestError:
        """Return the refusal with the default message of `code`."""
        return cls(code, code.default_message)

    @property
    def message_or_default(self) -> str | None:
        """The message, or the default message of the code without one."""
        return self.code.default_message if self.message is None else self.message

    @property
    def own_message(self) -> str | None:
        """The message; None where it says no more than the default message of the code."""
        return None if self.message == self.code.default_message else self.message


def invalid_request(message: str) -> RequestError:
    """Return the refusal INVALID_REQUEST with a message."""
    return RequestError(ErrorCode.INVALID_REQUEST, message)


class _WithCode(Protocol):
    """A response with an error code for the whole."""

    error_code: int


class _WithMessage(Protocol):
    """A response with an error code and a text for the whole."""

    error_code: int
    error_message: str | None


Coded = TypeVar("Coded", bound=_WithCode)
Explained = TypeVar("Explained", bound=_WithMessage)
Refuse: TypeAlias = Callable[[Message, RequestError, int], Refused]
"""Returns the response that refuses a request, in a version."""


def refused_by_code(make: Callable[[], Coded]) -> Refuse[Coded]:
    """Return a refusal that sets the error code of a response which is empty otherwise."""

    def refuse(_: Message, error: RequestError, _version: int) -> Coded:
        response = make()
        response.error_code = error.code
        return response

    return refuse


def refused_by_message(make: Callable[[], Explained]) -> Refuse[Explained]:
    """Return a refusal with the code and the error's own text."""
    return _explaining(make, lambda error: error.message)


def refused_by_default_message(make: Callable[[], Explained]) -> Refuse[Explained]:
    """Return a refusal with the code and the text that Kafka gives to the code by default."""
    return _explaining(make, lambda error: error.code.default_message)


def refused_by_message_or_default(make: Callable[[], Explained]) -> Refuse[Explained]:
    """Return a refusal with the code and the error's own text, or without one the code's."""
    return _explaining(make, lambda error: error.message_or_default)


def refused_by_own_message(make: Callable[[], Explained]) -> Refuse[Explained]:
    """Return a refusal with the code, and the error's text if that says more than the code."""
    return _explaining(make, lambda error: error.own_message)


def _explaining(
    make: Callable[[], Explained], text: Callable[[RequestError], str | None]
) -> Refuse[Explained]:
    def refuse(_: Message, error: RequestError, _version: int) -> Explained:
        response = make()
        response.error_code = error.code
        response.error_message = text(error)
        return response

    return refuse


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
