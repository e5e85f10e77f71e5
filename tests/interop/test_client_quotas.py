"""Client quotas: Kafka's own managers and ours make the same clients wait for the same times."""

from collections import Counter
from random import Random
from typing import Final

import pytest
from immutables import Map
from tests.support.kafka.java import Java

from kvorum.broker.quota.client_quota_manager import (
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    UNLIMITED,
    ClientQuotaManager,
    ClientRequestQuotaManager,
    QuotaClient,
)
from kvorum.broker.quota.sampled_stat import MetricConfig
from kvorum.metadata.client_quotas_image import CLIENT_ID, USER, ClientQuotasImage, QuotaEntity

SCRIPTS: Final = 150
STEPS: Final = 120
MS_PER_S: Final = 1000.0
USERS: Final = ("alice", "b%b", "carol")
CLIENT_IDS: Final = ("one", "two", "-")
NO_LIMIT: Final = 1.7976931348623157e308
"""Java's largest double: Kafka's most bytes of a client without a quota."""


class Script:
    """Makes up quotas and what clients use of them; values that both add up without rounding."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now_ms = random.randrange(10**6)
        self._last = ""

    def steps(self) -> list[str]:
        random = self._random
        kind = random.choice(("produce", "request"))
        samples, seconds = random.choice(((11, 1), (11, 1), (3, 1), (2, 5), (1, 1)))
        first = [f"new {kind} {samples} {seconds}", self._quota()]
        return [*first, *(self._step() for _ in range(STEPS))]

    def _step(self) -> str:
        random = self._random
        # As in a broker, what a client does not get is taken back at the time of the record.
        if self._last.startswith("record") and random.random() < 0.1:
            self._last = f"un{self._last}"
            return self._last
        self._now_ms += random.choice((0, 0, 7, 100, 400, 1000, 1001, 3500, 20_000))
        if random.random() < 0.12:
            self._last = self._quota()
        elif random.random() < 0.1:
            self._last = f"most {random.choice(USERS)} {random.choice(CLIENT_IDS)}"
        else:
            client = f"{random.choice(USERS)} {random.choice(CLIENT_IDS)}"
            value = random.choice((0.125, 3, 50, 800, 12_000, 250_000))
            self._last = f"record {self._now_ms} {client} {value}"
        return self._last

    def _quota(self) -> str:
        random = self._random
        user = random.choice(("-", "*", *USERS))
        client_id = random.choice(("-", "*", "one", "two"))
        if user == client_id == "-":
            user = "*"
        return f"quota {user} {client_id} {random.choice(('-', 0.5, 1, 20, 1000, 50_000))}"


class Fold:
    """Our managers, driven and asked as the Java program does with Kafka's."""

    def __init__(self) -> None:
        self._key = PRODUCER_BYTE_RATE
        self._entities: dict[QuotaEntity, Map[str, float]] = {}
        self._manager = ClientQuotaManager(self._key, MetricConfig(11, MS_PER_S))

    def answer(self, line: str) -> str:
        kind, *parts = line.split(" ")
        if kind == "new":
            self._begin(parts[0], MetricConfig(int(parts[1]), int(parts[2]) * MS_PER_S))
        elif kind == "quota":
            self._set(*parts)
        elif kind == "record":
            client, value = client_of(parts[1], parts[2]), float(parts[3])
            now_ms = float(parts[0])
            return str(self._manager.maybe_record_and_get_throttle_time_ms(client, value, now_ms))
        elif kind == "unrecord":
            client = client_of(parts[1], parts[2])
            self._manager.unrecord_quota_sensor(client, float(parts[3]), float(parts[0]))
        else:
            most = self._manager.max_value_in_quota_window(client_of(parts[0], parts[1]))
            return str(NO_LIMIT if most == UNLIMITED else most)
        return "ok"

    def _begin(self, kind: str, config: MetricConfig) -> None:
        self._entities = {}
        if kind == "request":
            self._key = REQUEST_PERCENTAGE
            self._manager = ClientRequestQuotaManager(self._key, config)
        else:
            self._key = PRODUCER_BYTE_RATE
            self._manager = ClientQuotaManager(self._key, config)

    def _set(self, user: str, client_id: str, bound: str) -> None:
        named = ((CLIENT_ID, client_id), (USER, user))
        entity = tuple((key, None if name == "*" else name) for key, name in named if name != "-")
        if bound == "-":
            self._entities.pop(entity, None)
        else:
            self._entities[entity] = Map({self._key: float(bound)})
        self._manager.update_quotas(ClientQuotasImage(Map(self._entities)))


def client_of(user: str, client_id: str) -> QuotaClient:
    return QuotaClient(user, "" if client_id == "-" else client_id)


@pytest.mark.slow
def test_each_client_waits_as_long_as_in_kafka(java: Java) -> None:
    random = Random(55)
    lines = [line for _ in range(SCRIPTS) for line in Script(random).steps()]
    answers = java.answers("ClientQuotaOracle", asked=lines)
    fold = Fold()
    kinds: Counter[str] = Counter()
    for line, theirs in zip(lines, answers, strict=True):
        ours = fold.answer(line)
        if line.startswith("most"):
            assert float(ours) == float(theirs), line
        else:
            assert ours == theirs, line
        kind = line.partition(" ")[0]
        kinds[kind if kind != "record" else f"record {'at once' if theirs == '0' else 'late'}"] += 1
    wanted = ("quota", "unrecord", "most", "record at once", "record late")
    assert min(kinds[kind] for kind in wanted) > SCRIPTS, kinds
