"""The emitter of straight code that writes one struct in one span of versions."""

from dataclasses import replace

from kvorum.codegen.defaults import is_default, is_lazy, slot_name
from kvorum.codegen.lines import Lines
from kvorum.codegen.model import FIXED_WIDTHS, NONE, class_name, json_name, snake_case
from kvorum.codegen.plan import FieldLayout, Layout
from kvorum.codegen.runs import Formats, WriteRun


def writer_name(layout: Layout) -> str:
    """Return the name of the function that writes the struct at this span."""
    return f"_write_{class_name(layout.message.name, layout.struct.name)}_{layout.lowest}"


def _known_present(each: FieldLayout) -> FieldLayout:
    """Return the layout of a tagged field that is known not to be null.

    A struct keeps the byte that marks it as present.
    """
    if not each.field.has_null_default or (
        each.field.type.is_struct and not each.field.type.is_array
    ):
        return each
    return replace(each, is_nullable=False, field=replace(each.field, nullable=NONE))


class WriterEmitter:
    """The emitter of one layout's writer; one call writes all structs of an array."""

    def __init__(self, layout: Layout, lines: Lines, formats: Formats) -> None:
        self._layout = layout
        self._lines = lines
        self._formats = formats
        self._run = WriteRun(lines, formats, "write")
        self._class = class_name(layout.message.name, layout.struct.name)

    def emit(self) -> None:
        """Emit the writer."""
        name, kind = writer_name(self._layout), self._class
        if self._layout.struct is self._layout.message.root:
            with self._lines.block(f"def {name}(o: {kind}, write: Write, version: int) -> None:"):
                self._body()
        else:
            with (
                self._lines.block(
                    f"def {name}(items: Iterable[{kind}], write: Write, version: int) -> None:"
                ),
                self._lines.block("for o in items:"),
            ):
                self._body()
        self._lines.add("", "")

    def _body(self) -> None:
        for each in self._layout.absent:
            self._refuse_to_drop(each)
        layout = self._layout
        for each in layout.plain:
            value = f"o.{snake_case(each.field.name)}"
            if each is layout.plain[-1] and self._ends_in_int32s(each):
                self._int32s_and_no_tags(each, value)
                return
            self._value(each, value)
        if layout.is_flexible:
            self._tags()
        else:
            with self._lines.block("if o.unknown_tagged_fields:"):
                self._lines.add("no_tags(version)")
        self._run.flush()

    def _refuse_to_drop(self, each: FieldLayout) -> None:
        field = each.field
        if field.is_ignorable:
            return
        value = f"o.{slot_name(field)}"
        differs = is_default(self._layout.message, field, value)
        if is_lazy(field):
            differs = f"{value} is not None and ({differs})"
        with self._lines.block(f"if {differs}:"):
            self._lines.add(f'non_default("{json_name(field.name)}", version)')

    # -- one value -----------------------------------------------------------------------------

    def _value(self, each: FieldLayout, value: str) -> None:
        kind = each.field.type
        if kind.is_array:
            self._array(each, value)
        elif kind.is_fixed:
            if kind.name == "uuid":
                self._check_uuid(value)
            self._run.add(FIXED_WIDTHS[kind.name][0], value)
        elif kind.is_struct:
            self._struct(each, value)
        else:
            self._blob(each, value)

    def _check_uuid(self, value: str) -> None:
        """Emit code that refuses a wrong length, which `struct` would cut or pad silently."""
        with self._lines.block(f"if len({value}) != 16:"):
            self._lines.add(f"not_a_uuid({value})")

    def _blob(self, each: FieldLayout, value: str) -> None:
        """Emit code that writes a string, bytes or records: a length and the bytes."""
        encode = ".encode()" if each.field.type.name == "string" else ""
        b = {"string": "text", "bytes": "raw"}.get(each.field.type.name, "blob")
        lines = self._lines
        can_be_null = each.is_nullable or each.field.type.name == "records"
        if not can_be_null and each.field.nullable:
            with lines.block(f"if {value} is None:"):
                lines.add(f'null_field("{json_name(each.field.name)}")')
        if each.is_nullable:
            source = f"{snake_case(each.field.name)}_value"
            lines.add(f"{source} = {value}")
            lines.add(f'{b} = b"" if {source} is None else {source}{encode}')
            null, length = ("0", f"len({b}) + 1") if each.is_compact else ("-1", f"len({b})")
            lines.add(f"n = {null} if {source} is None else {length}")
        else:
            if each.field.type.name == "records":
                with lines.block(f"if {value} is None:"):
                    lines.add(f'null_field("{json_name(each.field.name)}")')
            lines.add(f"{b} = {value}{encode}")
            lines.add(f"n = len({b}) + 1" if each.is_compact else f"n = len({b})")
        self._length(each, is_string=bool(encode))
        lines.add(f"{self._run.write}({b})")

    def _length(self, each: FieldLayout, *, is_string: bool) -> None:
        """Emit code that writes n, preceded by all waiting values."""
        if each.is_compact:
            long_form = "long_string_length(n)" if is_string else "write_uvarint(n)"
            self._run.flush_with_length("n", long_form)
            return
        self._run.add("h" if is_string else "i", "n")
        self._run.flush()

    def _struct(self, each: FieldLayout, value: str) -> None:
        inner = writer_name(self._layout.of_struct(each.field.type.name))
        call = f"{inner}(({value},), {self._run.write}, version)"
        if not each.is_nullable:
            self._run.flush()
            self._lines.add(call)
            return
        null, present = ('b"\\x00"', 'b"\\x01"') if each.is_tagged else ('b"\\xff"', 'b"\\x01"')
        self._run.flush()
        with self._lines.block(f"if {value} is None:"):
            self._lines.add(f"{self._run.write}({null})")
        with self._lines.block("else:"):
            self._lines.add(f"{self._run.write}({present})", call)

    # -- arrays --------------------------------------------------------------------------------

    def _array(self, each: FieldLayout, value: str) -> None:
        if not each.is_nullable and each.field.nullable:
            with self._lines.block(f"if {value} is None:"):
                self._lines.add(f'null_field("{json_name(each.field.name)}")')
        if each.field.type.name == "int32":
            self._int32_array(each, value)
            return
        lines, a = self._lines, self._list_name(each)
        lines.add(f"{a} = {value}")
        null, length = ("0", f"len({a}) + 1") if each.is_compact else ("-1", f"len({a})")
        is_null = f"{null} if {a} is None else " if each.is_nullable else ""
        lines.add(f"n = {is_null}{length}")
        self._length(each, is_string=False)
        with lines.block(f"if {a}:"):
            self._elements(each, a)

    @staticmethod
    def _list_name(each: FieldLayout) -> str:
        """Return a separate local for each array, so that type checkers infer its type."""
        return f"{snake_case(each.field.name)}_list"

    def _int32_array(self, each: FieldLayout, value: str) -> None:
        """Emit one call that writes the count and the numbers, if they are few."""
        lines, write, a = self._lines, self._run.write, self._list_name(each)
        if not each.is_nullable:
            lines.add(f"{a} = {value}")
            self._int32s(each, a)
            return
        self._run.flush()
        lines.add(f"{a} = {value}")
        null = 'b"\\x00"' if each.is_compact else 'b"\\xff\\xff\\xff\\xff"'
        with lines.block(f"if {a} is None:"):
            lines.add(f"{write}({null})")
        with lines.block("else:"):
            self._int32s(each, a)

    def _int32s(self, each: FieldLayout, a: str) -> None:
        """Emit code that writes the numbers together with the values that wait before them."""
        lines, write = self._lines, self._run.write
        length, code = ("n + 1", "B") if each.is_compact else ("n", "i")
        zero = 'b"\\x01"' if each.is_compact else 'b"\\x00\\x00\\x00\\x00"'
        lines.add(f"n = len({a})")
        if self._run.is_empty:
            with lines.block("if n == 0:"):
                lines.add(f"{write}({zero})")
            packs = "INT32_COMPACT" if each.is_compact else "INT32_COUNTED"
            with lines.block("elif n < 17:"):
                lines.add(f"{write}({packs}[n]({length}, *{a}))")
        else:
            with lines.block("if n < 17:"):
                lines.add(f"{write}({self._run.call_with_int32s(code, length, a)})")
        with lines.block("else:"):
            self._run.flush()
            count = f"write_uvarint({length})"
            if not each.is_compact:
                count = f"{self._formats.writer('i')}(n)"
            lines.add(f"{write}({count})", f'{write}(write_numbers({a}, "i"))')

    def _elements(self, each: FieldLayout, a: str) -> None:
        kind, write, lines = each.field.type.name, self._run.write, self._lines
        e, b = f"{a}_element", "text" if kind == "string" else "raw"
        if each.field.type.is_struct:
            inner = self._layout.of_struct(kind)
            lines.add(f"{writer_name(inner)}({a}, {write}, version)")
        elif kind == "uuid":
            with lines.block(f"for {e} in {a}:"):
                self._check_uuid(e)
                lines.add(f"{write}({e})")
        elif kind in FIXED_WIDTHS:
            lines.add(f'{write}(write_numbers({a}, "{FIXED_WIDTHS[kind][0]}"))')
        else:
            encode = ".encode()" if kind == "string" else ""
            with lines.block(f"for {e} in {a}:"):
                lines.add(f"{b} = {e}{encode}")
                lines.add(f"n = len({b}) + 1" if each.is_compact else f"n = len({b})")
                self._length(each, is_string=kind == "string")
                lines.add(f"{write}({b})")

    def _ends_in_int32s(self, each: FieldLayout) -> bool:
        """Return whether the struct ends in a short array of numbers, without known tags."""
        kind = each.field.type
        is_int32s = kind.is_array and kind.name == "int32"
        return is_int32s and each.is_compact and not each.is_nullable and not self._layout.tagged

    def _int32s_and_no_tags(self, each: FieldLayout, value: str) -> None:
        """Emit one call that writes the last array and the empty tagged section."""
        lines, write, a = self._lines, self._run.write, self._list_name(each)
        self._run.flush()
        lines.add(f"{a} = {value}")
        if each.field.nullable:
            with lines.block(f"if {a} is None:"):
                lines.add(f'null_field("{json_name(each.field.name)}")')
        lines.add(f"n = len({a})")
        with lines.block("if o.unknown_tagged_fields or n > 16:"):
            lines.add(f"{write}(write_uvarint(n + 1))")
            lines.add(f'{write}(write_numbers({a}, "i"))')
            lines.add(f"{write}(write_tags([], o.unknown_tagged_fields))")
        with lines.block("elif n == 0:"):
            lines.add(f'{write}(b"\\x01\\x00")')
        with lines.block("else:"):
            lines.add(f"{write}(INT32_LAST[n](n + 1, *{a}))")

    # -- tags ----------------------------------------------------------------------------------

    def _tags(self) -> None:
        lines, tagged = self._lines, self._layout.tagged
        for place, each in enumerate(tagged):
            if place == 0:
                lines.add("tags: Tags = []", "payload: list[bytes | memoryview]")
            self._tagged(each)
        known = "tags" if tagged else "[]"
        condition = "tags or o.unknown_tagged_fields" if tagged else "o.unknown_tagged_fields"
        self._run.flush_with_zero(condition, f"write_tags({known}, o.unknown_tagged_fields)")

    def _tagged(self, each: FieldLayout) -> None:
        """Emit code that collects one tagged field's payload, unless it is at its default."""
        value = f"o.{slot_name(each.field)}"
        main, self._run = self._run, WriteRun(self._lines, self._formats, "put")
        differs = is_default(self._layout.message, each.field, value)
        if is_lazy(each.field):
            differs = f"{value} is not None and ({differs})"
        with self._lines.block(f"if {differs}:"):
            self._lines.add("payload = []", "put = payload.append")
            self._value(_known_present(each), value)
            self._run.flush()
            self._lines.add(f'tags.append(({each.field.tag}, b"".join(payload)))')
        self._run = main
