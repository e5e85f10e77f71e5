"""Results of the functions without their nulls, so that a test names only what is there."""

from typing import Any, cast


def present(value: Any) -> Any:
    """Leave out what is null, at any depth: the columns that a result does not have."""
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {name: present(each) for name, each in named.items() if each is not None}
    if isinstance(value, list):
        elements: list[Any] = value  # pyright: ignore[reportUnknownVariableType] - any columns
        return [present(each) for each in elements]
    return value
