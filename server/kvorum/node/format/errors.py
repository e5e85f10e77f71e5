"""The only error of this package."""


class FormatError(ValueError):
    """Directories cannot be formatted as requested; the text is Kafka's own, on one line."""
