"""The controller mutation quota (KIP-599): how fast a client may create and delete partitions.

The limit of a user and client id is found as for the other client quotas. Each partition costs one
token of a bucket. As in Kafka, the buckets belong to the node and are not in the log: a controller
that takes over begins with full buckets.

Times are whole milliseconds of a monotonic clock, as in Kafka. Of a finer clock, a throttle time
would lose its fraction, and a client that waits for as long would be refused again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

from kvorum.metadata.api import RequestError
from kvorum.metadata.configs_image import CLIENT_ID, USER, ClientQuotasImage, QuotaEntity
from kvorum.metadata.unused_quotas import UnusedQuotas
from kvorum.wire.error_codes import ErrorCode

CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
UNLIMITED_RATE: Final = float(2**63 - 1)

_USER_AND_CLIENT: Final = frozenset({USER, CLIENT_ID})
_ONLY_CLIENTS: Final = frozenset({frozenset({CLIENT_ID})})
_ONLY_USERS: Final = frozenset({frozenset({USER})})
_ONLY_PAIRS: Final = frozenset({_USER_AND_CLIENT})


class BucketKey(NamedTuple):
    """The user and client id of one bucket; a part that the quota does not name is empty."""

    user: str
    client_id: str


@dataclass(slots=True)
class TokenBucket:
    """A token bucket: refilled at a rate, up to a burst; one request may overdraw it."""

    tokens: float
    updated_ms: int
    used_ms: int

    def level(self, *, rate: float, burst: float, now_ms: int) -> float:
        """Return the number of tokens at `now_ms`."""
        earned = rate * (now_ms - self.updated_ms) / 1000.0
        self.tokens = min(burst, self.tokens + earned)
        self.updated_ms = now_ms
        return self.tokens

    def draw(self, count: float, *, rate: float, burst: float, now_ms: int) -> None:
        """Take `count` tokens out, even if that overdraws the bucket."""
        level = self.level(rate=rate, burst=burst, now_ms=now_ms)
        self.tokens = min(burst, level - count)
        self.used_ms = now_ms


class MutationQuota:
    """The quota that applies to one request.

    A strict quota refuses mutations while the bucket is overdrawn; a permissive one only counts
    them. With either, `throttle_time_ms` returns how long the client has to wait.
    """

    __slots__ = ("_bucket", "_burst", "_is_strict", "_rate", "_throttle_ms", "_throttled_at_ms")

    def __init__(self, bucket: TokenBucket, *, rate: float, burst: float, is_strict: bool) -> None:
        self._bucket = bucket
        self._rate = rate
        self._burst = burst
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._throttled_at_ms = 0

    def record(self, partitions: int, now_ms: int) -> None:
        """Charge `partitions`; raise `RequestError` 89 where the quota is exceeded."""
        if not self._is_strict:
            self._draw(partitions, now_ms)
            self._note_overdraft(now_ms)
        elif self._note_overdraft(now_ms):
            raise RequestError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        else:
            self._draw(partitions, now_ms)

    def throttle_time_ms(self, now_ms: int) -> int:
        """Return how long the client has to wait from `now_ms` on; 0 for no wait."""
        return max(0, self._throttle_ms - (now_ms - self._throttled_at_ms))

    def _draw(self, partitions: int, now_ms: int) -> None:
        self._bucket.draw(float(partitions), rate=self._rate, burst=self._burst, now_ms=now_ms)

    def _note_overdraft(self, now_ms: int) -> bool:
        level = self._bucket.level(rate=self._rate, burst=self._burst, now_ms=now_ms)
        if level >= 0.0:
            return False
        # Java rounds halves up.
        self._throttle_ms = int(-level / self._rate * 1000.0 + 0.5)
        self._throttled_at_ms = now_ms
        return True


@dataclass(slots=True)
class MutationQuotas:
    """All buckets of a node.

    The product of `window_count` and `window_seconds` is the time for which tokens accumulate.
    """

    window_count: Annotated[int, "controller.quota.window.num"] = 11
    window_seconds: Annotated[int, "controller.quota.window.size.seconds"] = 1
    _buckets: dict[BucketKey, TokenBucket] = field(default_factory=dict[BucketKey, TokenBucket])
    _seen: ClientQuotasImage | None = None
    _limits: MutationLimits | None = None
    _unused: UnusedQuotas = field(default_factory=UnusedQuotas, compare=False)

    def quota_for(
        self, quotas: ClientQuotasImage, *, user: str, client_id: str, is_strict: bool, now_ms: int
    ) -> MutationQuota | None:
        """Return the quota of a request, or None where no entity has a quota."""
        limits = self._limits
        if limits is None or self._seen is not quotas:
            limits = self._limits = MutationLimits.of(quotas)
            self._seen = quotas
        if not limits.kinds:
            return None
        key = limits.bucket_key(user=user, client_id=client_id)
        rate = limits.rate(key)
        burst = self.window_count * self.window_seconds * rate
        bucket = self._buckets.get(key)
        if bucket is None:
            self._unused.forget(self._buckets, lambda known: known.used_ms, now_ms)
            bucket = TokenBucket(tokens=burst, updated_ms=now_ms, used_ms=now_ms)
            self._buckets[key] = bucket
        return MutationQuota(bucket, rate=rate, burst=burst, is_strict=is_strict)


class MutationLimits(NamedTuple):
    """The mutation rates of users and client ids; `kinds` are the types of entity that have one.

    Precedence is Kafka's, from the closest: user and client id, user and any client, user, any
    user and client id, any user and any client, any user, client id, any client.
    """

    rates: Mapping[QuotaEntity, float]
    kinds: frozenset[frozenset[str]]

    @classmethod
    def of(cls, quotas: ClientQuotasImage) -> MutationLimits:
        """Return the limits that `quotas` holds."""
        rates = dict(_mutation_rates(quotas))
        kinds = frozenset(frozenset(kind for kind, _ in entity) for entity in rates)
        return cls(MappingProxyType(rates), kinds)

    def bucket_key(self, *, user: str, client_id: str) -> BucketKey:
        """Return the key of the bucket that a request draws from."""
        if self.kinds == _ONLY_CLIENTS:
            return BucketKey("", client_id)
        if self.kinds == _ONLY_USERS:
            return BucketKey(user, "")
        if self.kinds == _ONLY_PAIRS:
            return BucketKey(user, client_id)
        for owner in (user, None):
            if any(_user_client(owner, client) in self.rates for client in (client_id, None)):
                return BucketKey(user, client_id)
            if _user(owner) in self.rates:
                return BucketKey(user, "")
        return BucketKey("", client_id)

    def rate(self, key: BucketKey) -> float:
        """Return the rate of a bucket in partitions per second."""
        found = (self.rates.get(entity) for entity in _entities_of(key))
        return next((rate for rate in found if rate is not None), UNLIMITED_RATE)


def _mutation_rates(quotas: ClientQuotasImage) -> Iterator[tuple[QuotaEntity, float]]:
    """Yield the entities with a mutation rate; addresses have none."""
    for entity, values in quotas.entities.items():
        rate = values.get(CONTROLLER_MUTATION_RATE)
        if rate is not None and {kind for kind, _ in entity} <= _USER_AND_CLIENT:
            yield entity, rate


def _entities_of(key: BucketKey) -> list[QuotaEntity]:
    """Return the entities whose limits apply to a bucket, the most specific first."""
    users = (key.user, None)
    clients = (key.client_id, None)
    if key.user and key.client_id:
        return [_user_client(user, client) for user in users for client in clients]
    if key.user:
        return [_user(user) for user in users]
    if key.client_id:
        return [_client(client) for client in clients]
    return []


def _user_client(user: str | None, client_id: str | None) -> QuotaEntity:
    # Parts of an entity are sorted by type.
    return ((CLIENT_ID, client_id), (USER, user))


def _user(user: str | None) -> QuotaEntity:
    return ((USER, user),)


def _client(client_id: str | None) -> QuotaEntity:
    return ((CLIENT_ID, client_id),)
