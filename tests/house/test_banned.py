"""Calls and comments that the house does without, and API keys that are bare numbers."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.source_tree import ROOT, SOURCE_ROOTS, SourceFile, python_files

from kvorum.wire.api_keys import ApiKey

PURE_FOLDERS = (
    "wire",
    *(f"server/kvorum/{room}" for room in ("raft", "metadata", "controller", "broker")),
)
BANNED_IN_THE_CORE = {
    "open": "the core does no I/O; hand the bytes in",
    "time.time": "take `now` as an argument",
    "time.monotonic": "take `now` as an argument",
    "random.random": "take a random.Random at construction",
    "random.randint": "take a random.Random at construction",
    "random.choice": "take a random.Random at construction",
    "random.shuffle": "take a random.Random at construction",
    "uuid.uuid4": "draw from the random.Random that was handed in",
}
BANNED_EVERYWHERE = {
    "os.system": "use subprocess with a list",
    "eval": "parse the text",
    "exec": "write the code",
}
BARE_EXEMPTION = re.compile(r"#\s*(type: ignore(?!\[)|noqa(?!:)|pyright: ignore(?!\[))")
EXEMPTION = re.compile(
    r"#\s*(?:type: ignore\[[^\]]*\]|noqa:\s*[A-Z0-9, ]+|pyright: ignore\[[^\]]*\])"
)
FOLDERS = (*SOURCE_ROOTS, "tests", "benchmarks")
TAKES_A_KEY = re.compile(
    r"(request_class|response_class|(request|response)_header_version|RequestHeader"
    r"|ResponseApiVersion|HandlerSpec|Api)\Z"
)
"""Functions and classes whose first argument is the key of an API."""
HOLDS_APIS = re.compile(r"(api_specs|apis(\(\))?|peer_versions|api_keys|forwardable_keys(\(\))?)\Z")
"""Containers that are indexed by the key of an API."""
MEANS_A_KEY = re.compile(r"api_key\b", re.IGNORECASE)
KEY_NAME = re.compile(r"_?([A-Z]+_)*(KEY|API)S?\Z")
HEADER_FORMAT = re.compile(r">i?hhi")
"""The beginning of a request by hand: the size perhaps, the key, the version, a correlation id."""
ADDRESS = re.compile(r"(host|loopback|advertised)\W*\}:\{[^{}]*port", re.IGNORECASE)
"""A text of an address by hand, which lacks the brackets that IPv6 needs."""
WRITES_ADDRESSES = frozenset({"server/kvorum/metadata/address.py", "server/kvorum/cli/cluster.py"})
"""The one place for them, and a line that is printed as Kafka's tool prints it."""
NUMBERS = frozenset(int(key) for key in ApiKey)


def dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def calls(file: SourceFile) -> Iterator[tuple[int, str]]:
    for node in file.nodes:
        if isinstance(node, ast.Call):
            yield node.lineno, dotted_name(node.func)


def banned_calls(file: SourceFile, banned: dict[str, str]) -> Iterator[str]:
    for line, name in calls(file):
        if name in banned:
            yield f"{file.name}:{line}: {name}(): {banned[name]}"


def test_the_core_uses_no_time_chance_or_files() -> None:
    found = [
        problem
        for file in python_files(*PURE_FOLDERS)
        for problem in banned_calls(file, BANNED_IN_THE_CORE)
    ]
    assert found == []


def test_no_call_that_is_banned_everywhere() -> None:
    found = [
        problem
        for file in python_files(*SOURCE_ROOTS, "tests", "benchmarks", "tools")
        for problem in banned_calls(file, BANNED_EVERYWHERE)
    ]
    assert found == []


def test_no_task_catches_the_cancellation_of_another_beside_its_own() -> None:
    found = [
        f"{file.name}:{number}"
        for file in python_files(*SOURCE_ROOTS)
        for number, line in enumerate(file.text.splitlines(), start=1)
        if "suppress(asyncio.CancelledError" in line
    ]
    assert found == [], "kvorum.node.tasks ends a task and leaves its caller's own cancellation"


def test_only_the_storage_room_opens_files_of_a_log() -> None:
    found = [
        f"{file.name}:{line}: {name}"
        for file in python_files("storage")
        if file.path != ROOT / "storage" / "kvorum" / "storage" / "files.py"
        for line, name in calls(file)
        if name in {"open", "os.open", "os.fsync", "os.rename", "os.replace"}
    ]
    assert found == [], "the file system is reached through kvorum.storage.files alone"


@pytest.mark.parametrize("folder", [*SOURCE_ROOTS, "tests", "benchmarks", "tools"])
def test_every_exemption_names_its_code_and_its_reason(folder: str) -> None:
    found = [
        f"{file.name}:{number}: {line.strip()}"
        for file in python_files(folder)
        for number, line in enumerate(file.text.splitlines(), start=1)
        if is_unexplained(line)
    ]
    assert found == []


def is_unexplained(line: str) -> bool:
    """Tell whether `line` switches a checker off without code, or without saying why."""
    if "BARE_EXEMPTION" in line or "EXEMPTION =" in line:
        return False
    if BARE_EXEMPTION.search(line):
        return True
    match = EXEMPTION.search(line)
    return match is not None and not line[match.end() :].strip(" -#:")


def is_bare(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in NUMBERS


def are_bare(node: ast.expr | None) -> bool:
    """Tell whether `node` is a literal that is made of such numbers alone, or keyed by them."""
    match node:
        case ast.Tuple(elts=found) | ast.Set(elts=found) | ast.List(elts=found):
            return bool(found) and all(map(is_bare, found))
        case ast.Dict(keys=keys):
            return bool(keys) and all(map(is_bare, keys))
        case ast.Call(args=[inner]):
            return are_bare(inner)
        case _:
            return is_bare(node)


def assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement gives a value to, each with its value."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            pairs = zip(names, values, strict=False)
            yield from ((ast.unparse(name), value) for name, value in pairs)
        case ast.Assign(targets=[target], value=value):
            yield ast.unparse(target), value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield ast.unparse(target), value
        case _:
            return


def means_a_key(name: str, value: ast.expr) -> bool:
    """Tell whether a constant is the key of an API, or a collection of keys."""
    if isinstance(value, ast.Constant):
        of_that_name = ApiKey.__members__.get(name.removesuffix("_KEY").lstrip("_"))
        return of_that_name is not None and of_that_name == value.value
    return KEY_NAME.match(name) is not None and are_bare(value)


def looked_up(file: SourceFile) -> set[str]:
    """Return the names of this file's tables that are asked about the key of an API."""
    found: set[str] = set()
    if not MEANS_A_KEY.search(file.text):
        return found
    for node in file.nodes:
        table, key = look_up(node)
        if key is not None and MEANS_A_KEY.search(ast.unparse(key)):
            found.add(table)
    return found


def look_up(node: ast.AST) -> tuple[str, ast.expr | None]:
    """Return which table a node looks into, and what for."""
    match node:
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(table)]):
            return table, key
        case ast.Subscript(value=ast.Name(table), slice=key):
            return table, key
        case ast.Call(func=ast.Attribute(value=ast.Name(table), attr="get"), args=[key, *_]):
            return table, key
        case _:
            return "", None


def has_bare_key(node: ast.AST, tables: set[str]) -> bool:
    match node:
        case ast.Tuple(elts=[ast.Constant(value="broker" | "controller"), number]):
            return is_bare(number)
        case ast.Call(func=ast.Attribute(attr="pack"), args=[ast.Constant(value=str(form)), *rest]):
            place = 1 if form.startswith(">i") else 0
            return bool(HEADER_FORMAT.match(form) and rest[place:] and is_bare(rest[place]))
        case ast.Call(func=function, args=[first, *_]):
            return is_bare(first) and bool(TAKES_A_KEY.search(ast.unparse(function)))
        case ast.Subscript(value=container, slice=key):
            return is_bare(key) and bool(HOLDS_APIS.search(ast.unparse(container).lower()))
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            return any(map(are_bare, sides)) and any(
                MEANS_A_KEY.search(ast.unparse(side)) for side in sides
            )
        case ast.keyword(arg=str(name), value=value):
            return is_bare(value) and bool(MEANS_A_KEY.search(name))
        case ast.Assign() | ast.AnnAssign():
            return any(
                means_a_key(name, value) or (name in tables and are_bare(value))
                for name, value in assigned(node)
            )
        case _:
            return False


def bare_keys(file: SourceFile) -> Iterator[ast.AST]:
    tables = looked_up(file)
    return (node for node in file.nodes if has_bare_key(node, tables))


def has_bare_keys(file: SourceFile) -> bool:
    return any(True for _ in bare_keys(file))


def test_no_api_is_named_by_its_number() -> None:
    found = [
        f"{file.name}:{getattr(node, 'lineno', '?')}: {ast.unparse(node)[:80]}"
        for file in python_files(*FOLDERS)
        for node in bare_keys(file)
    ]
    assert found == [], "name the API: kvorum.wire.api_keys.ApiKey"


def snippet(folder: Path, text: str) -> SourceFile:
    """Return a source file with `text`."""
    path = folder / "snippet.py"
    path.write_text(text)
    return SourceFile(path)


@pytest.mark.parametrize(
    "text",
    [
        "API_SPECS[3]",
        "broker_apis()[3]",
        "connection.peer_versions[60]",
        "request_class(18)",
        "HandlerSpec(19, broker='x')",
        "ApiVersionsResponseApiVersion(18, 0, 4)",
        "header.request_api_key == 18",
        "request.API_KEY in {19, 20}",
        "RequestHeader(request_api_key=19)",
        "FETCH_KEY = 1",
        "LISTS_APIS = frozenset({18})",
        "FAILED = {('controller', 41)}",
        "METADATA = 3",
        "CREATE_TOPICS, API_VERSIONS = 19, 18",
        "QUORUM_KEYS: Final = (1, 52)",
        "TIMED: Final = frozenset({19, 20})\nif request.API_KEY in TIMED: pass",
        "SINCE = MappingProxyType({19: 6})\nSINCE.get(header.request_api_key)",
        "TABLE = {19: 'x'}\nTABLE[request.API_KEY]",
        "struct.pack('>ihhih', 10, 3, 99, 1, -1)",
    ],
)
def test_a_bare_number_is_noticed(tmp_path: Path, text: str) -> None:
    assert has_bare_keys(snippet(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "API_SPECS[ApiKey.METADATA]",
        "request.encode(3)",
        "header.request_api_version == 3",
        "struct.pack('>ihhih', 10, 9999, 0, 1, -1)",
        "request_class(9999)",
        "LEVELS = {19: 'x'}\nLEVELS[level]",
        "METADATA = 7",
    ],
)
def test_other_numbers_are_let_be(tmp_path: Path, text: str) -> None:
    assert not has_bare_keys(snippet(tmp_path, text))


def test_addresses_are_written_in_one_place() -> None:
    """librdkafka takes no ::1:9092, but [::1]:9092."""
    found = [
        f"{file.name}:{node.lineno}: use metadata.address.Address"
        for file in python_files(*SOURCE_ROOTS)
        if file.name not in WRITES_ADDRESSES
        for node in file.nodes
        if isinstance(node, ast.JoinedStr) and ADDRESS.search(ast.unparse(node))
    ]
    assert found == []
