"""The codecs of kafka-python, kio and aiokafka behind one small interface.

None of the peers' packages is fully typed, hence the `Any` at this edge.
"""

import importlib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.codec_cases import Case


@dataclass(frozen=True, slots=True)
class Codec:
    """One library's way to decode and encode one case; `encode` writes the result of `decode`."""

    library: str
    decode: Callable[[], object]
    encode: Callable[[], bytes]


def ours(case: Case, data: bytes) -> Codec:
    kind = type(case.message)
    version = case.version
    decoded = kind.decode(data, version)
    return Codec("kvorum", lambda: kind.decode(data, version), lambda: decoded.encode(version))


def kafka_python(case: Case, data: bytes) -> Codec | None:
    name = type(case.message).__name__
    kind = find_attribute(
        name, "kafka.protocol.metadata", "kafka.protocol.consumer", "kafka.protocol.producer"
    )
    if kind is None:
        return None
    version = case.version
    decoded = kind.decode(data, version=version)
    return Codec("kafka-python", lambda: kind.decode(data, version=version), decoded.encode)


def kio(case: Case, data: bytes) -> Codec | None:
    name = type(case.message).__name__
    api, kind_name = split_name(name)
    try:
        module = importlib.import_module(f"kio.schema.{api}.v{case.version}.{kind_name}")
    except ModuleNotFoundError:
        return None
    serial: Any = importlib.import_module("kio.serial")
    kind: Any = getattr(module, name)
    read = serial.entity_reader(kind)
    write = serial.entity_writer(kind)
    decoded, _ = read(data, 0)

    def encode() -> bytes:
        buffer = io.BytesIO()
        write(buffer, decoded)
        return buffer.getvalue()

    return Codec("kio", lambda: read(data, 0), encode)


def aiokafka(case: Case, data: bytes) -> Codec | None:
    name = type(case.message).__name__
    old_name = name.replace("ApiVersions", "ApiVersion")
    kind = find_attribute(
        f"{old_name}_v{case.version}",
        *(
            f"aiokafka.protocol.{module}"
            for module in ("metadata", "fetch", "admin", "coordination")
        ),
    )
    if kind is None:
        return None
    decoded = kind.decode(io.BytesIO(data))
    return Codec("aiokafka", lambda: kind.decode(io.BytesIO(data)), decoded.encode)


def codecs(case: Case) -> list[Codec]:
    """Return every library that supports the message's version, ours first, each one checked."""
    data = case.message.encode(case.version)
    candidates = [ours(case, data), kafka_python(case, data), kio(case, data), aiokafka(case, data)]
    found = [codec for codec in candidates if codec is not None]
    for codec in found:
        if codec.encode() != data:
            message = f"{codec.library} encodes {case.name} to different bytes"
            raise ValueError(message)
    return found


def split_name(name: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\w+)(Request|Response)", name)
    if match is None:
        message = f"not a request or response: {name}"
        raise ValueError(message)
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", match[1]).lower()
    return snake, match[2].lower()


def find_attribute(name: str, *modules: str) -> Any | None:
    for module in modules:
        found = getattr(importlib.import_module(module), name, None)
        if found is not None:
            return found
    return None
