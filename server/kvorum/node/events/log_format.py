"""The formats of a node's log: text for people, or one JSON object per line for machines."""

import json
import logging
from datetime import UTC, datetime

from kvorum.node.events.log_event import Field, LogEvent

TEXT_FORMAT = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
TAKEN_KEYS = frozenset({"time", "level", "logger", "message", "exception"})


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object: time, level, logger, message, fields, traceback.

    A field with the name of one of those keys gets an underscore behind its name.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a log record."""
        fields: dict[str, Field] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
        }
        message: object = record.msg
        if isinstance(message, LogEvent):
            fields["message"] = message.sentence
            for name, value in message.fields.items():
                fields[f"{name}_" if name in TAKEN_KEYS else name] = value
        else:
            fields["message"] = record.getMessage()
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)
