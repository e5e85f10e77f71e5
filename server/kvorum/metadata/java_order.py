"""The order in which Java sorts texts."""


def in_java_order(text: str) -> bytes:
    """Return the key that sorts texts as ``String.compareTo`` does, by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
