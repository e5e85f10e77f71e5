"""The emitter of the tables besides the messages: APIs, records, their keys, error codes."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvorum.codegen.emit_module import MARK
from kvorum.codegen.lines import Lines
from kvorum.codegen.model import VERSION_MAX, MessageSpec, module_name


@dataclass(frozen=True, slots=True)
class ErrorCodeFact:
    """One error code of the protocol; `message` is Kafka's default message."""

    name: str
    code: int
    message: str | None


def emit_api_table(specs: Sequence[MessageSpec], record_names: frozenset[str]) -> str:
    """Return the module with one row for each API and each metadata record.

    `record_names` are the records of the cluster metadata log: other logs have their own numbers.
    """
    lines = Lines()
    lines.add(MARK, '"""Every API and every metadata record, by key."""', "")
    lines.add("from __future__ import annotations", "")
    with lines.block("API_ROWS = ("):
        for spec in _served_requests(specs):
            lines.add(f"{_api_row(spec)},")
    lines.add(")")
    records = [spec for spec in specs if spec.kind == "metadata" and spec.name in record_names]
    with lines.block("RECORD_ROWS = ("):
        for spec in sorted(records, key=lambda spec: spec.api_key or 0):
            lines.add(f'({spec.api_key}, "{spec.name}", "{module_name(spec)}"),')
    lines.add(")")
    names = [spec for spec in specs if spec.versions]
    with lines.block("MODULES = {"):
        for spec in names:
            lines.add(f'"{spec.name}": "{module_name(spec)}",')
    lines.add("}")
    return lines.text()


def emit_api_keys(specs: Sequence[MessageSpec]) -> str:
    """Return the module with the enum of API keys, by the names of Kafka's ApiKeys."""
    lines = Lines()
    lines.add(MARK, '"""The key of every API, by the name that Kafka\'s ApiKeys gives it."""', "")
    lines.add("from __future__ import annotations", "", "from enum import IntEnum", "", "")
    with lines.block("class ApiKey(IntEnum):"):
        lines.add('"""The number that a request header names an API by."""', "")
        for spec in _served_requests(specs):
            lines.add(f"{module_name(spec).upper()} = {spec.api_key}")
    return lines.text()


def _served_requests(specs: Sequence[MessageSpec]) -> list[MessageSpec]:
    """Return the requests that have a version, in the order of their keys."""
    requests = [spec for spec in specs if spec.kind == "request" and spec.versions]
    return sorted(requests, key=lambda spec: spec.api_key or 0)


def _api_row(spec: MessageSpec) -> str:
    name = spec.name.removesuffix("Request")
    flexible = spec.flexible & spec.versions
    first = flexible.lowest if flexible else VERSION_MAX + 1
    listeners = "".join(f'"{listener}", ' for listener in sorted(spec.listeners))
    return (
        f'(\n        {spec.api_key}, "{name}", "{module_name(spec)}",\n        '
        f"{spec.versions.lowest}, {spec.versions.highest}, {first}, ({listeners.rstrip()}), "
        f"{spec.is_latest_unstable},\n    )"
    )


def emit_error_codes(facts: Sequence[ErrorCodeFact]) -> str:
    """Return the module with the enum of error codes."""
    lines = Lines()
    lines.add(
        MARK, '"""Error codes of the protocol, and the message Kafka gives by default."""', ""
    )
    lines.add("from __future__ import annotations", "", "from enum import IntEnum", "", "")
    with lines.block("class ErrorCode(IntEnum):"):
        lines.add('"""An error code; codes of newer releases stay plain integers."""', "")
        for fact in sorted(facts, key=lambda fact: fact.code):
            lines.add(f"{fact.name} = {fact.code}")
        lines.add("", "@property")
        with lines.block("def default_message(self) -> str | None:"):
            lines.add('"""The text that Kafka answers with this code by default."""')
            lines.add("return _MESSAGES.get(self)")
    lines.add("", "")
    with lines.block("_MESSAGES = {"):
        for fact in sorted(facts, key=lambda fact: fact.code):
            if fact.message is not None:
                with lines.block(f"ErrorCode.{fact.name}: ("):
                    lines.add(*_wrapped(fact.message))
                lines.add("),")
    lines.add("}")
    return lines.text()


def _wrapped(message: str, width: int = 80) -> list[str]:
    """Return a long text as adjacent literals."""
    words = message.split(" ")
    rows = [words[0]]
    for word in words[1:]:
        if len(rows[-1]) + len(word) < width:
            rows[-1] += f" {word}"
        else:
            rows[-1] += " "
            rows.append(word)
    return [_quoted(row) for row in rows]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
