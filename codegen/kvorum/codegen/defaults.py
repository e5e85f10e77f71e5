"""The defaults of fields as Python source."""

from kvorum.codegen.model import Field, MessageSpec, class_name, snake_case

_PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "uuid": "bytes",
    "bytes": "bytes",
    "records": "bytes | memoryview | None",
}


def python_type(message: MessageSpec, field: Field) -> str:
    """Return the annotation of a field's attribute; it covers every version."""
    name = field.type.name
    found = (
        class_name(message.name, name) if field.type.is_struct else _PYTHON_TYPES.get(name, "int")
    )
    if field.type.is_array:
        found = f"list[{found}]"
    is_nullable = field.nullable or field.has_null_default
    return f"{found} | None" if is_nullable and "None" not in found else found


def fresh_default(message: MessageSpec, field: Field) -> str:
    """Return an expression for the default, evaluated again for each object."""
    if field.has_null_default:
        return "None"
    if field.type.is_array:
        return "[]"
    if field.type.is_struct:
        return f"{class_name(message.name, field.type.name)}()"
    if field.type.name == "records":
        return "None"
    if field.type.name == "uuid":
        return "ZERO_UUID"
    if field.type.name == "bytes":
        return 'b""'
    return repr(field.default)


def parameter(message: MessageSpec, field: Field) -> tuple[str, str]:
    """Return the parameter of `__init__`, and the expression to store for it."""
    name = snake_case(field.name)
    annotation = python_type(message, field)
    fresh = fresh_default(message, field)
    if fresh == "[]":
        return f"{name}: {annotation} = EMPTY", f"[] if {name} is EMPTY else {name}"
    if fresh.endswith("()"):
        optional = annotation if "None" in annotation else f"{annotation} | None"
        return f"{name}: {optional} = None", f"{fresh} if {name} is None else {name}"
    return f"{name}: {annotation} = {fresh}", name


def is_default(message: MessageSpec, field: Field, value: str) -> str:
    """Return a condition that is true when `value` is not the default."""
    fresh = fresh_default(message, field)
    if fresh == "None":
        return f"{value} is not None"
    if fresh == "False":
        return f"{value} is not False"
    if fresh == "True":
        return f"{value} is not True"
    if fresh.endswith("()"):
        return _struct_differs(message, field, value)
    return f"{value} != {fresh}"


def _struct_differs(message: MessageSpec, field: Field, value: str) -> str:
    """Return a comparison field by field for a flat struct, which needs no other object."""
    struct = message.struct(field.type.name)
    if any(inner.type.is_struct or inner.type.is_array for inner in struct.fields):
        return f"{value} != {class_name(message.name, field.type.name)}()"
    parts = [
        is_default(message, inner, f"{value}.{snake_case(inner.name)}") for inner in struct.fields
    ]
    return " or ".join([*parts, f"{value}.unknown_tagged_fields"])


def is_lazy(field: Field) -> bool:
    """Return whether the default of an absent field is made at its first use, not by the reader.

    Structs in tagged sections are mostly absent, and making three of them for every partition of a
    Fetch response costs more than reading the partition.
    """
    return (
        field.type.is_struct
        and not field.type.is_array
        and bool(field.tagged)
        and not field.nullable
    )


def slot_name(field: Field) -> str:
    """Return the slot of a field; for a lazy field, the slot behind its property."""
    name = snake_case(field.name)
    return f"maybe_{name}" if is_lazy(field) else name
