"""The emitter of straight code that reads one struct in one span of versions."""

from kvorum.codegen.defaults import fresh_default, is_lazy, slot_name
from kvorum.codegen.lines import Lines
from kvorum.codegen.model import FIXED_WIDTHS, class_name, json_name, snake_case
from kvorum.codegen.plan import SHORT_VALUE_BYTES, UNKNOWN_TAG_BYTES, FieldLayout, Layout
from kvorum.codegen.runs import Formats, ReadRun


def reader_name(layout: Layout) -> str:
    """Return the name of the function that reads the struct at this span."""
    return f"_read_{class_name(layout.message.name, layout.struct.name)}_{layout.lowest}"


def _is_number(kind: str) -> bool:
    """Return whether values of a type are numbers, which an array has side by side."""
    return kind in FIXED_WIDTHS and kind != "uuid"


def _is_compact_int32s(each: FieldLayout) -> bool:
    kind = each.field.type
    return kind.is_array and kind.name == "int32" and each.is_compact


class ReaderEmitter:
    """The emitter of one layout's reader.

    The structs of an array are read by a function with its own loop: one call per array, not per
    element.
    """

    def __init__(self, layout: Layout, lines: Lines, formats: Formats) -> None:
        self._layout = layout
        self._lines = lines
        self._formats = formats
        self._run = ReadRun(lines, formats)
        self._class = class_name(layout.message.name, layout.struct.name)
        self._is_byte_read = False

    def emit(self) -> None:
        """Emit the reader, and in a separate function the rare path through known tags."""
        if self._layout.tagged:
            self._emit_tags()
        start = self._lines.count
        if self._layout.struct is self._layout.message.root:
            self._emit_root()
        else:
            self._emit_array()
        self._drop_unused(start)

    def _drop_unused(self, start: int) -> None:
        self._lines.drop_unused("size", start)
        self._lines.drop_unused("few", start)

    def _emit_root(self) -> None:
        name, kind = reader_name(self._layout), self._class
        with self._lines.block(
            f"def {name}(data: bytes, pos: int, budget: Budget) -> tuple[{kind}, int]:"
        ):
            self._prologue()
            self._body()
            self._lines.add("return o, pos")
        self._lines.add("", "")

    def _emit_array(self) -> None:
        name, kind = reader_name(self._layout), self._class
        with self._lines.block(
            f"def {name}(data: bytes, pos: int, count: int, budget: Budget)"
            f" -> tuple[list[{kind}], int]:"
        ):
            self._prologue()
            self._lines.add(f"found: list[{kind}] = []")
            with self._lines.block("for _ in range(count):"):
                self._body()
                self._lines.add("found.append(o)")
            self._lines.add("return found, pos")
        self._lines.add("", "")

    def _prologue(self) -> None:
        self._lines.add("size = len(data)", "few = 17 if budget is None else 0")
        if any(each.field.type.name == "records" for each in self._layout.plain):
            self._lines.add("view = memoryview(data)")

    def _body(self) -> None:
        lines, layout = self._lines, self._layout
        lines.add(f"o = new({self._class})")
        plain = layout.plain
        for place, each in enumerate(plain):
            following = plain[place + 1] if place + 1 < len(plain) else None
            target = f"o.{snake_case(each.field.name)}"
            if _is_compact_int32s(each) and self._starts_with_byte(following):
                self._int32s_and_byte(each, target)
            else:
                self._value(each, target, is_last=False)
        if layout.is_flexible:
            self._next_byte()
        self._run.flush()
        for each in [*layout.absent, *layout.tagged]:
            fresh = "None" if is_lazy(each.field) else fresh_default(layout.message, each.field)
            lines.add(f"o.{slot_name(each.field)} = {fresh}")
        lines.add("o.unknown_tagged_fields = None")
        if layout.is_flexible:
            with lines.block("if n:"):
                if layout.tagged:
                    lines.add(f"pos = {self._tags_name()}(o, data, pos, n, budget)")
                else:
                    lines.add("o.unknown_tagged_fields, pos = read_tags(data, pos, n, budget)")

    # -- the byte after an array of numbers ----------------------------------------------------

    def _starts_with_byte(self, following: FieldLayout | None) -> bool:
        """Return whether a compact length or the count of tags comes next on the wire."""
        if following is None:
            return self._layout.is_flexible
        kind = following.field.type
        has_length = kind.is_array or not (kind.is_fixed or kind.is_struct)
        return has_length and following.is_compact

    def _int32s_and_byte(self, each: FieldLayout, target: str) -> None:
        """Emit code for an array and the byte after it, as the next n; short arrays are fast."""
        self._length_byte()
        lines = self._lines
        with lines.block("if n == 1:"):
            lines.add(f"{target} = []", "pos += 1")
        with lines.block("elif 0 < n <= few:"):
            lines.add("read, step = INT32S_AND_BYTE[n]")
            lines.add(f"{target} = [*read(data, pos)]", "pos += step")
        with lines.block("else:"):
            function = "long_int32s_or_null" if each.is_nullable else "long_int32s"
            lines.add(f"{target}, pos = {function}(data, pos, n, budget)", "pos += 1")
        lines.add("n = data[pos - 1]")
        self._is_byte_read = True

    def _length_byte(self) -> None:
        """Emit code that reads the first byte of a compact length into n."""
        self._next_byte()
        self._run.flush()

    def _next_byte(self) -> None:
        if not self._is_byte_read:
            self._run.add("B", 1, "n")
        self._is_byte_read = False

    # -- one value -----------------------------------------------------------------------------

    def _value(self, each: FieldLayout, target: str, *, is_last: bool) -> None:
        kind = each.field.type
        if kind.is_array:
            self._array(each, target)
        elif kind.is_fixed:
            code, width = FIXED_WIDTHS[kind.name]
            self._run.add(code, width, target)
        elif kind.is_struct:
            self._struct(each, target)
        else:
            self._blob(each, target)
        if is_last:
            self._run.flush()

    def _blob(self, each: FieldLayout, target: str) -> None:
        """Emit code that reads a string, bytes or records."""
        kind = each.field.type.name
        self._length(each, is_string=kind == "string")
        end = "pos + n - 1" if each.is_compact else "pos + n"
        null = "n == 0" if each.is_compact else "n < 0"
        if each.is_nullable:
            with self._lines.block(f"if {null}:"):
                self._lines.add(f"{target} = None")
            with self._lines.block("else:"):
                self._slice(target, kind, end=end, name=each.field.name)
        else:
            self._slice(target, kind, end=end, name=each.field.name)

    def _slice(self, target: str, kind: str, *, end: str, name: str) -> None:
        lines = self._lines
        lines.add(f"end = {end}")
        with lines.block("if not pos <= end <= size:"):
            lines.add(f'check_length(end - pos, pos, size, what="{json_name(name)}")')
        if kind == "string":
            # A try block costs nothing unless an error is raised.
            with lines.block("try:"):
                lines.add(f"{target} = data[pos:end].decode()")
            with lines.block("except UnicodeDecodeError:"):
                lines.add(f"{target} = decode_with_replacement(data[pos:end])")
        else:
            lines.add(f"{target} = {'view' if kind == 'records' else 'data'}[pos:end]")
        lines.add("pos = end")

    def _length(self, each: FieldLayout, *, is_string: bool) -> None:
        """Emit code that reads a length or count into n; a compact one is one higher, 0 is null."""
        if each.is_compact:
            self._length_byte()
            function = "string_length" if is_string else "long_uvarint"
            with self._lines.block("if n > 127:"):
                self._lines.add(f"n, pos = {function}(data, pos)")
            return
        code, width = ("h", 2) if is_string else ("i", 4)
        self._run.add(code, width, "n")
        self._run.flush()

    def _struct(self, each: FieldLayout, target: str) -> None:
        inner = self._layout.of_struct(each.field.type.name)
        if not each.is_nullable:
            self._run.flush()
            self._lines.add(f"({target},), pos = {reader_name(inner)}(data, pos, 1, budget)")
            return
        if each.is_tagged:
            self._run.add("B", 1, "n")
        else:
            self._run.add("b", 1, "n")
        self._run.flush()
        with self._lines.block("if n == 0:" if each.is_tagged else "if n < 0:"):
            self._lines.add(f"{target} = None")
        with self._lines.block("else:"):
            self._lines.add(f"({target},), pos = {reader_name(inner)}(data, pos, 1, budget)")

    # -- arrays --------------------------------------------------------------------------------

    def _array(self, each: FieldLayout, target: str) -> None:
        self._length(each, is_string=False)
        lines = self._lines
        if each.is_compact:
            lines.add("n -= 1")
        if each.is_nullable:
            with lines.block("if n < 0:"):
                lines.add(f"{target} = None")
            with lines.block("else:"):
                self._elements(each, target)
            return
        if _is_number(each.field.type.name):
            with lines.block("if n < 0:"):
                lines.add(f'check_length(-1, pos, size, what="{json_name(each.field.name)}")')
        self._elements(each, target)

    def _elements(self, each: FieldLayout, target: str) -> None:
        kind = each.field.type.name
        if each.field.type.is_struct:
            inner = self._layout.of_struct(kind)
            self._check_array(each, inner.bytes_min, inner.memory_bytes)
            self._lines.add(f"{target}, pos = {reader_name(inner)}(data, pos, n, budget)")
        elif kind == "int32":
            with self._lines.block("if n == 0:"):
                self._lines.add(f"{target} = []")
            with self._lines.block("elif n < few:"):
                self._lines.add(f"{target} = [*INT32_READERS[n](data, pos)]", "pos += 4 * n")
            with self._lines.block("else:"):
                self._lines.add(f'{target} = read_numbers(data, pos, n, "i", budget)')
                self._lines.add("pos += 4 * n")
        elif _is_number(kind):
            code, width = FIXED_WIDTHS[kind]
            self._lines.add(f'{target} = read_numbers(data, pos, n, "{code}", budget)')
            self._lines.add(f"pos += {width} * n" if width > 1 else "pos += n")
        else:
            self._loop(each, target)

    def _check_array(self, each: FieldLayout, bytes_min: int, memory_bytes: int) -> None:
        """Emit code that refuses a count that is null, or too large for the input or the memory."""
        facts = f'{bytes_min}, {memory_bytes}, "{json_name(each.field.name)}"'
        self._lines.add(f"check_array(n, {facts}, pos, size, budget)")

    def _loop(self, each: FieldLayout, target: str) -> None:
        """Emit code that reads strings, bytes and uuids one by one; elements are never null."""
        kind = each.field.type.name
        width = 16 if kind == "uuid" else self._length_width(each)
        self._check_array(each, width, SHORT_VALUE_BYTES)
        self._lines.add(f"{target} = []")
        with self._lines.block("for _ in range(n):"):
            if kind == "uuid":
                self._lines.add(f"{target}.append(data[pos : pos + 16])", "pos += 16")
                return
            self._length(each, is_string=kind == "string")
            self._slice(
                "element",
                kind,
                end="pos + n - 1" if each.is_compact else "pos + n",
                name=each.field.name,
            )
            self._lines.add(f"{target}.append(element)")

    @staticmethod
    def _length_width(each: FieldLayout) -> int:
        if each.is_compact:
            return 1
        return 2 if each.field.type.name == "string" else 4

    # -- tags ----------------------------------------------------------------------------------

    def _tags_name(self) -> str:
        return reader_name(self._layout).replace("_read_", "_tags_")

    def _emit_tags(self) -> None:
        lines = self._lines
        start = lines.count
        with lines.block(
            f"def {self._tags_name()}(o: {self._class}, data: bytes, pos: int, count: int,"
            " budget: Budget) -> int:"
        ):
            self._tags_prologue()
            with lines.block("for _ in range(count):"):
                lines.add("tag, pos, limit = read_tag(data, pos, previous)", "previous = tag")
                for place, each in enumerate(self._layout.tagged):
                    word = "if" if place == 0 else "elif"
                    with lines.block(f"{word} tag == {each.field.tag}:"):
                        self._tagged_value(each)
                self._unknown_tag()
            with lines.block("if unknown:"):
                lines.add("o.unknown_tagged_fields = unknown")
            lines.add("return pos")
        self._drop_unused(start)
        lines.add("", "")

    def _tags_prologue(self) -> None:
        self._lines.add("size = len(data)", "few = 17 if budget is None else 0")
        if any(each.field.type.name == "records" for each in self._layout.tagged):
            self._lines.add("view = memoryview(data)")
        with self._lines.block("if count > 127:"):
            self._lines.add("count, pos = long_uvarint(data, pos)")
        memory = f"count * {UNKNOWN_TAG_BYTES} + {self._layout.tagged_memory_bytes}"
        with self._lines.block("if budget is not None:"):
            self._lines.add(f"budget.charge({memory}, pos)")
        self._lines.add("unknown: Tags = []", "previous = -1")

    def _tagged_value(self, each: FieldLayout) -> None:
        name = snake_case(each.field.name)
        self._value(each, f"o.{name}", is_last=True)
        self._lines.add("end_of_tag(tag, pos, limit)")

    def _unknown_tag(self) -> None:
        later = [
            each.field.tag
            for each in self._layout.absent
            if each.field.tag is not None and each.field.tagged
        ]
        if later:
            condition = f"tag in {tuple(later)!r}" if len(later) > 1 else f"tag == {later[0]}"
            with self._lines.block(f"elif {condition}:"):
                self._lines.add('fail(f"tag {tag} does not exist in this version", pos)')
        with self._lines.block("else:"):
            self._lines.add("unknown.append((tag, data[pos:limit]))", "pos = limit")
