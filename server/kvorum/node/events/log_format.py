"""How the lines of a node's log look: text for people, or a JSON object a line for machines."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from kvorum.node.events.event import Event, Field

TEXT_FORMAT = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
TAKEN_KEYS = frozenset({"time", "level", "logger", "message", "exception"})


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the event's fields, a traceback.

    A field that is called as one of those keys gets an underscore behind its name.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        said: dict[str, Field] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
        }
        message: object = record.msg
        if isinstance(message, Event):
            said["message"] = message.sentence
            for name, value in message.fields.items():
                said[f"{name}_" if name in TAKEN_KEYS else name] = value
        else:
            said["message"] = record.getMessage()
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)
