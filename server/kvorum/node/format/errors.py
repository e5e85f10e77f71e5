"""The one error of this package."""


class FormatError(ValueError):
    """Directories cannot be formatted as asked; the text is Kafka's own, on one line."""
