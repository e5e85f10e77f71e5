"""Runs of fixed-width values, each read or written with one call of the struct module."""

from kvorum.codegen.lines import Lines


class Formats:
    """The formats a module needs, each a module-level constant made once."""

    def __init__(self) -> None:
        self._readers: set[str] = set()
        self._writers: set[str] = set()
        self._array_writers: set[str] = set()

    def reader(self, code: str) -> str:
        """Return the name of the function that reads `code`."""
        self._readers.add(code)
        return f"_read_{code}".replace("?", "t")

    def writer(self, code: str) -> str:
        """Return the name of the function that writes `code`."""
        self._writers.add(code)
        return f"_pack_{code}".replace("?", "t")

    def array_writers(self, code: str) -> str:
        """Return the name of the functions that write `code` and up to 16 int32, by their count."""
        self._array_writers.add(code)
        return f"_packs_{code}".replace("?", "t")

    def emit(self, lines: Lines) -> None:
        """Define every constant asked for, in order of name."""
        for code in sorted(self._readers):
            lines.add(f'{self.reader(code)} = unpacker("{code}")')
        for code in sorted(self._writers):
            lines.add(f'{self.writer(code)} = packer("{code}")')
        for code in sorted(self._array_writers):
            lines.add(f'{self.array_writers(code)} = packers("{code}")')


class ReadRun:
    """Fixed-width values waiting to be read together."""

    def __init__(self, lines: Lines, formats: Formats) -> None:
        self._lines = lines
        self._formats = formats
        self._codes: list[str] = []
        self._targets: list[str] = []
        self._width = 0

    def add(self, code: str, width: int, target: str) -> None:
        """Read `code` into `target` at the next flush."""
        self._codes.append(code)
        self._targets.append(target)
        self._width += width

    def flush(self) -> None:
        """Emit the one call that reads all waiting values."""
        if not self._codes:
            return
        if self._codes == ["B"]:
            self._lines.add(f"{self._targets[0]} = data[pos]")
        else:
            function = self._formats.reader("".join(self._codes))
            targets = ", ".join(self._targets)
            comma = "," if len(self._targets) == 1 else ""
            self._lines.add(f"{targets}{comma} = {function}(data, pos)")
        self._lines.add(f"pos += {self._width}")
        self._codes, self._targets, self._width = [], [], 0


class WriteRun:
    """Fixed-width values waiting to be written together, by calls of `write`."""

    def __init__(self, lines: Lines, formats: Formats, write: str) -> None:
        self._lines = lines
        self._formats = formats
        self.write = write
        self._codes: list[str] = []
        self._values: list[str] = []

    def add(self, code: str, value: str) -> None:
        """Write `value` as `code` at the next flush."""
        self._codes.append(code)
        self._values.append(value)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._codes

    def call_with_int32s(self, count_code: str, count: str, numbers: str) -> str:
        """Return the call that packs the waiting values, a count and at most 16 numbers."""
        packs = self._formats.array_writers("".join(self._codes) + count_code)
        return f"{packs}[n]({', '.join([*self._values, count])}, *{numbers})"

    def flush(self) -> None:
        """Emit the one call that writes all waiting values."""
        if not self._codes:
            return
        self._lines.add(f"{self.write}({self._call(self._codes, self._values)})")
        self._codes, self._values = [], []

    def flush_with_zero(self, condition: str, other: str) -> None:
        """Emit the waiting values and a zero byte, or `other` in its place if `condition` holds."""
        if not self._codes:
            self._lines.add(f'{self.write}({other} if {condition} else b"\\x00")')
            return
        # The pad character costs no argument.
        self._lines.add(f"fields = {self._call([*self._codes, 'x'], self._values)}")
        self._lines.add(f"{self.write}(fields[:-1] + {other} if {condition} else fields)")
        self._codes, self._values = [], []

    def flush_with_length(self, value: str, long_form: str) -> None:
        """Emit the waiting values and the varint `value`, in one call if that is one byte."""
        lines = self._lines
        if not self._codes:
            lines.add(f"{self.write}(UVARINT_1[{value}] if {value} < 128 else {long_form})")
            return
        short = self._call([*self._codes, "B"], [*self._values, value])
        long = f"{self._call(self._codes, self._values)} + {long_form}"
        lines.add(f"{self.write}({short} if {value} < 128 else {long})")
        self._codes, self._values = [], []

    def _call(self, codes: list[str], values: list[str]) -> str:
        return f"{self._formats.writer(''.join(codes))}({', '.join(values)})"
