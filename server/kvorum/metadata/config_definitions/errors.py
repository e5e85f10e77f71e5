"""The one operating error of this package: a configuration value that Kafka would refuse."""


class InvalidConfigError(ValueError):
    """A configuration value or key is not acceptable; the text is Kafka's own message.

    `is_invalid_request` selects one of Kafka's two error codes: INVALID_CONFIG (40) when false,
    INVALID_REQUEST (42) when true.
    """

    def __init__(self, message: str, *, is_invalid_request: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_invalid_request = is_invalid_request


def invalid_value(name: str, value_text: str, reason: str | None = None) -> InvalidConfigError:
    """Return the error of Kafka's ConfigException for `name` set to `value_text`."""
    suffix = "" if reason is None else f": {reason}"
    return InvalidConfigError(f"Invalid value {value_text} for configuration {name}{suffix}")
