"""The outcome of a login by SASL, with clients in Python and with Kafka's own."""

import importlib
import logging
import re
import ssl
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Producer
from tests.support.kafka.java import ToolRunner
from tests.support.node_process import write_properties
from tests.support.sasl_clients import PLAIN_MODULE, SCRAM_MODULE
from tests.support.waiting import PATIENCE_S, wait_for

LET_IN: Final = "let in"
_REFUSAL: Final = re.compile(r"SASL .*?: (?P<text>.*?) \(after \d+ms")
_LOGGED_REFUSAL: Final = re.compile(
    r"Bootstrap connection .* SaslAuthenticationFailedError: (?P<text>.*) \(backoff"
)
_METADATA_S: Final = 0.2
_BOOTSTRAP_MS_MAX: Final = 3_200
_FIRST_BOOTSTRAP_MS: Final = 1_000
OauthCallback: TypeAlias = Callable[[str], tuple[str, float]]
"""Returns a token of OAUTHBEARER and its end, in seconds since 1970."""


class Login(NamedTuple):
    """The name and password of a client, or the id and secret of a delegation token.

    `trusted` is the file with the authority of a node.
    """

    protocol: str
    mechanism: str
    user: str
    password: str
    trusted: Path
    is_by_token: bool = False


def by_librdkafka(port: int, login: Login) -> str:
    """Return that the client is let in, or the text of its error."""
    return outcome_of_librdkafka(
        port,
        {
            "security.protocol": login.protocol,
            "sasl.mechanism": login.mechanism,
            "sasl.username": login.user,
            "sasl.password": login.password,
            "ssl.ca.location": str(login.trusted),
        },
    )


def outcome_of_librdkafka(port: int, settings: Mapping[str, str | bool | OauthCallback]) -> str:
    """Return that a client with these settings is let in, or the text of its error."""
    errors: list[KafkaError] = []
    producer = Producer(
        {"bootstrap.servers": f"127.0.0.1:{port}", "error_cb": errors.append, **settings}
    )

    def outcome() -> str | None:
        producer.poll(0)
        refusals = [each for each in errors if each.code() == KafkaError._AUTHENTICATION]
        if refusals:
            match = _REFUSAL.search(refusals[0].str())
            return match["text"] if match is not None else refusals[0].str()
        return LET_IN if producer.list_topics(timeout=_METADATA_S).brokers else None

    return wait_for(outcome, "the client is let in or is not", not_yet=(KafkaException,))


def by_kafka_python(port: int, login: Login) -> str:
    """Return that kafka-python is let in, or the text of the error that it logs."""
    return outcome_of_kafka_python(
        port,
        {
            "security_protocol": login.protocol,
            "ssl_cafile": str(login.trusted),
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": login.user,
            "sasl_plain_password": login.password,
        },
    )


def outcome_of_kafka_python(port: int, settings: Mapping[str, object]) -> str:
    """Return that kafka-python with these settings is let in, or the text that it logs."""
    library: Any = importlib.import_module("kafka")
    errors: Any = importlib.import_module("kafka.errors")

    # It tries again and again for the whole of this time, also after a refusal. On a busy machine
    # it may miss a refusal, as the connection ends right after it: there has to be another try.
    timeouts_ms = (min(_FIRST_BOOTSTRAP_MS << attempt, _BOOTSTRAP_MS_MAX) for attempt in count())

    def outcome() -> str | None:
        with messages_of("kafka.net.manager") as messages:
            try:
                client = library.KafkaAdminClient(
                    bootstrap_servers=f"127.0.0.1:{port}",
                    bootstrap_timeout_ms=next(timeouts_ms),
                    **settings,
                )
            except errors.KafkaTimeoutError:
                refusals = filter(None, map(_LOGGED_REFUSAL.search, messages))
                return next((match["text"] for match in refusals), None)
        client.close()
        return LET_IN

    return wait_for(outcome, "kafka-python is let in or is not")


def kafka_python_token(token: str) -> object:
    """Return the provider of a token for kafka-python."""
    base: Any = importlib.import_module("kafka.net.sasl.oauth").AbstractTokenProvider

    class Provider(base):  # type: ignore[misc]  # the library has no types
        def token(self) -> str:
            return token

    return Provider()


@contextmanager
def messages_of(logger_name: str) -> Generator[list[str]]:
    """Collect the messages of a logger while it lasts."""
    messages: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger = logging.getLogger(logger_name)
    collector = Collector()
    logger.addHandler(collector)
    try:
        yield messages
    finally:
        logger.removeHandler(collector)


async def by_aiokafka(port: int, login: Login) -> str:
    """Return that aiokafka is let in, or the class of its error."""
    return await outcome_of_aiokafka(
        port,
        {
            "security_protocol": login.protocol,
            "ssl_context": ssl.create_default_context(cafile=str(login.trusted)),
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": login.user,
            "sasl_plain_password": login.password,
        },
    )


async def outcome_of_aiokafka(port: int, settings: Mapping[str, object]) -> str:
    """Return that aiokafka with these settings is let in, or the class of its error."""
    library: Any = importlib.import_module("aiokafka")
    errors: Any = importlib.import_module("aiokafka.errors")
    client = library.AIOKafkaProducer(
        bootstrap_servers=f"127.0.0.1:{port}",
        request_timeout_ms=int(PATIENCE_S * 1000),
        **settings,
    )
    try:
        await client.start()
    except errors.KafkaError as error:
        return type(error).__name__
    else:
        return LET_IN
    finally:
        await client.stop()


def aiokafka_token(token: str) -> object:
    """Return the provider of a token for aiokafka."""
    base: Any = importlib.import_module("aiokafka.abc").AbstractTokenProvider

    class Provider(base):  # type: ignore[misc]  # the library has no types
        async def token(self) -> str:
            return token

    return Provider()


def by_tool(port: int, login: Login, tools: ToolRunner, folder: Path) -> str:
    """Return that kafka-topics is let in, or the first line that it prints."""
    module = PLAIN_MODULE if login.mechanism == "PLAIN" else SCRAM_MODULE
    by_token = ' tokenauth="true"' if login.is_by_token else ""
    settings = {
        "security.protocol": login.protocol,
        "sasl.mechanism": login.mechanism,
        "sasl.jaas.config": (
            f'{module} required username="{login.user}" password="{login.password}"{by_token};'
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(login.trusted),
    }
    return outcome_of_tool(port, settings, tools, folder)


def outcome_of_tool(port: int, settings: Mapping[str, str], tools: ToolRunner, folder: Path) -> str:
    """Return that kafka-topics with these settings is let in, or the first line that it prints."""
    properties = folder / "client.properties"
    write_properties(properties, settings)
    address = ("--bootstrap-server", f"127.0.0.1:{port}")
    done = tools.run("kafka-topics", *address, "--command-config", str(properties), "--list")
    return LET_IN if done.exit_code == 0 else done.stdout.splitlines()[0]
