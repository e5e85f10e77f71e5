"""Our commands of the metadata shell beside the classes of Kafka's, in one Java process."""

import random
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.every_record import every_batch, log_of
from tests.interop.java_judge import JavaJudge
from tests.interop.metadata_shell import (
    REFERENCE_SOFTWARE,
    history,
    load,
    shell_directories,
    snapshot_of,
)
from tests.interop.random_log import RandomLog
from tests.support.kafka.java import Java, shell_java

from kvorum.inspection.shell.commands import COMMANDS, Surroundings, complete, read_step
from kvorum.inspection.shell.help_text import column_lines
from kvorum.inspection.shell.image_tree import DanglingNameError, Directory, Node, shell_tree
from kvorum.inspection.shell.lines import LineHistory, split_line
from kvorum.metadata.image import MetadataImage

pytestmark = pytest.mark.sample


LINES = 3000
WALKS = 400
SEEDS = 4


@pytest.fixture(scope="module")
def judge(java: Java) -> Iterator[JavaJudge]:
    with JavaJudge(shell_java(java), "ShellJudge") as judge:
        yield judge


class BothShells:
    """Our shell and Kafka's, which are given the same commands."""

    def __init__(self, judge: JavaJudge, file: Path, data: bytes) -> None:
        self._judge = judge
        image, provenance = load(data)
        self.image: MetadataImage = image
        self.root: Directory = shell_tree(image, provenance, REFERENCE_SOFTWARE)
        self.working_directory = "/"
        file.write_bytes(data)
        assert judge.answer("load", str(file)) == "="

    def check(self, *words: str, is_shell: bool = True) -> str:
        """Give both a command, check that they print the same, and return that."""
        theirs = self._judge.answer("shell" if is_shell else "command", *words)
        ours = self._ours(words, is_shell=is_shell)
        assert ours == theirs, words
        return ours

    def check_completion(self, *words: str) -> list[str]:
        """Check that the last word may become the same in both, and return what."""
        theirs = self._judge.answer("complete", *words)
        candidates = list(complete(words, self._around(is_shell=True)))
        ours = [f"{'+' if is_whole else '-'}{text}" for text, is_whole in candidates]
        assert "=" + "\n".join(ours) == theirs, words
        return [candidate.text for candidate in candidates]

    def _around(self, *, is_shell: bool) -> Surroundings:
        return Surroundings(
            self.root, self.working_directory, history=LineHistory() if is_shell else None
        )

    def _ours(self, words: tuple[str, ...], *, is_shell: bool) -> str:
        printed = ""
        try:
            step = read_step(words, self._around(is_shell=is_shell))
            for line in step.lines:
                printed += f"{line}\n"
        except DanglingNameError as error:
            return f"!{printed}{error}"
        self.working_directory = step.goes_to or self.working_directory
        return f"={printed}"


def every_path(node: Node, path: str = "") -> Iterator[str]:
    yield path or "/"
    if isinstance(node, Directory):
        for name in node.sorted_names():
            child = node.child(name)
            if child is not None:
                yield from every_path(child, f"{path}/{name}")


@pytest.fixture
def shells(judge: JavaJudge, tmp_path: Path) -> BothShells:
    """Both shells over an image with something in each of its parts."""
    return BothShells(judge, tmp_path / "metadata", snapshot_of(load(log_of(every_batch()))[0]))


def test_every_command_at_every_path(shells: BothShells) -> None:
    paths = list(every_path(shells.root))
    assert len(paths) > 80
    for path in paths:
        for command in ("ls", "cat", "find", "tree", "cd"):
            shells.check(command, path)
        shells.check("pwd")
        shells.check("ls")
        shells.check("find")


GOOD_AND_BAD = [
    *([], [""], ["", ""], ["ls"], ["ls", ""], ["ls", "", "/local"], ["l"], ["tre", "/"], ["c"]),
    *(["ca"], ["nothing"], ["NOTHING", "/"], ["ls /"], ["-x"], ["-"], ["-5"], ["--"], ["--", "ls"]),
    *(["--", "ls", "/", "--"], ["---"], ["--help"], ["-h"], ["-h", "ls"], ["ls", "-h"]),
    *(["ls", "--help"], ["ls", "--he"], ["ls", "--h"], ["ls", "--h=1"], ["ls", "-h=1"]),
    *(["ls", "-hx"], ["ls", "-xh"], ["ls", "-=x"], ["ls", "--=x"], ["ls", "--helping"]),
    *(["ls", "-"], ["ls", "---"], ["ls", "-5"], ["ls", "-5x"], ["ls", "--", "-x", "--"]),
    *(["ls", "--x=y"], ["ls", "/", "-x", "/"], ["ls", "/local", "-h"], ["tre", "-h"], ["l", "-x"]),
    *(["cat"], ["cat", "/"], ["cat", "/local/version", "/local/commitId", "/no"], ["cat", "--"]),
    *(["cat", ""], ["cat", "", "/local/version"], ["tree"], ["tree", "", "/no"], ["tree", "/no"]),
    *(["find", "/no", "/local"], ["find", "local/"], ["find", "//local//"], ["find", "", ""]),
    *(["cd"], ["cd", "/image", "/local"], ["cd", "a", "b", "c"], ["cd", "no"], ["cd", "*"]),
    *(["cd", "/local/version"], ["cd", "/local/*"], ["cd", "/{local,image}"], ["pwd", "x"]),
    *(["pwd", "-h"], ["exit", "x"], ["exit", "-h"], ["help", "x"], ["help"], ["help", "-h"]),
    *(["history", "x"], ["history", "1", "2"], ["history", "-h"], ["history", "99999999999"]),
    *(["history", "2147483648"], ["history", "0x1"], ["man"], ["man", ""], ["man", "ls", "cd"]),
    *(["man", "nothing"], ["man", "tre"], ["man", "-h"], ["man", "--"], ["ls", "/lo*", "/im*"]),
    *(["ls", "/local/version", "/image"], ["ls", "/local/version", "/local", "/image/acls"]),
    *(["ls", "/image/topics/byName", "/local/*"], ["ls", "/nothing", "/local/version"]),
    *(["ls", "/image/scram/*", "/local"], ["ls", "/image/scram/*"], ["ls", "/local/{version,x}"]),
    *(["cat", "/image/features/finalized_none"], ["cat", "/image/features/finalized_"]),
    *(["ls", "/.."], ["ls", "/./local/../local"], ["ls", "../../.."], ["ls", "/local/version/.."]),
    *(["cat", "/local/version/"], ["ls", "/local/version/x"], ["ls", "/local/version/*"]),
    *(["cat", "/image/cluster/brokers/*"], ["tree", "/image/cluster/*"], ["ls", "/*/*/*"]),
    *(["ls", "/image/{features,topics,none}/*"], ["ls", "/image/{features"], ["ls", "/{a,{b}}"]),
    *(["ls", "/{}"], ["ls", "/{,local}"], ["ls", "/l?cal"], ["ls", "/?????"], ["ls", r"/loc\al"]),
    *(["ls", r"/loc\al*"], ["ls", r"/\l*"], ["ls", r"/local\*"], ["ls", "/local\\"]),
    *(["ls", "/*\\"], ["ls", "/*,*"], ["ls", "/*}*"], ["ls", "/(local)*"], ["ls", "/[l]*"]),
    *(["ls", "/image/topics/byId/no"], ["cat", "/image/topics/byName/*/id"], ["ls", "*", "*"]),
    *(["tree", "/image/topics/byName/*/00"], ["cat", "/image/topics/byName/*/+0"]),
    *(["cat", "/image/topics/byName/*/-0"], ["cat", "/image/cluster/brokers/+1"]),
    *(["cat", "/image/cluster/brokers/1x"], ["ls", "/image/configs/BROKER:"]),
    *(["ls", "/image/configs/BROKER_LOGGER"], ["ls", "/image/configs/NOTHING:x"]),
    *(["ls", "/image/configs/TOPIC"], ["ls", "/image/configs/*"], ["tree", "/image/configs/B*"]),
    *(["ls", "/image/clientQuotas/*"], ["ls", "/image/clientQuotas/user()"]),
    *(["find", "/image/clientQuotas"], ["tree", "/image/clientQuotas"], ["find", "/", "/local"]),
    *(["ls", "/image/clientQuotas/user(a)_"], ["ls", "/image/scram/PLAIN", "/image/scram/UNKNOWN"]),
]


@pytest.mark.parametrize("is_shell", [True, False])
def test_good_and_bad_command_lines(shells: BothShells, is_shell: bool) -> None:
    for words in GOOD_AND_BAD:
        if is_shell or words[:1] != ["history"]:
            shells.check(*words, is_shell=is_shell)


def test_help_of_every_command(shells: BothShells) -> None:
    for name in COMMANDS:
        assert shells.check("man", name).startswith(f"={name}: ")
        assert shells.check(name, "-h").startswith(f"=usage:  {name} [-h]")


def test_quota_entities_by_any_spelling(shells: BothShells) -> None:
    paths = [path for path in every_path(shells.root) if path.startswith("/image/clientQuotas/")]
    names = {path.split("/")[3] for path in paths}
    assert len(names) > 2
    for name in names:
        parts = name.split("_")
        for spelled in (name, "_".join(reversed(parts)), name.replace("(", r"(\\"), f"{name}_"):
            shells.check("tree", f"/image/clientQuotas/{spelled}")


def random_path(drawn: random.Random, paths: list[str]) -> str:
    """Return a path of the tree, some of its components replaced by wildcards or by nonsense."""
    parts = drawn.choice(paths).split("/")
    for index in range(1, len(parts)):
        part = parts[index]
        cut = drawn.randrange(len(part) + 1)
        parts[index] = drawn.choice(
            [part] * 5
            + [f"{part[:cut]}*", f"*{part[cut:]}", f"{part[:cut]}?{part[cut + 1 :]}"]
            + ["*", "..", "."]
            + [f"{{{part},none}}", f"{part[:cut]}{{{part[cut:]},x}}", f"{part[:cut]}\\{part[cut:]}"]
            + [f"{part}x", "", f"{{{part}", f"{part}}}", f"{part[:cut]},{part[cut:]}"]
        )
    return "/".join(parts)[drawn.randrange(2) :]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_walks(judge: JavaJudge, tmp_path: Path, seed: int) -> None:
    shells = BothShells(
        judge, tmp_path / "metadata", snapshot_of(load(log_of(RandomLog(seed).batches(100)))[0])
    )
    drawn = random.Random(seed)
    paths = list(every_path(shells.root))
    outputs = 0
    for _ in range(WALKS):
        command = drawn.choice(["ls", "ls", "cat", "find", "tree", "cd", "pwd"])
        count = 0 if command == "pwd" else 1 if command == "cd" else drawn.randrange(1, 4)
        words = [random_path(drawn, paths) for _ in range(count)]
        outputs += "no such" not in shells.check(command, *words).lower()
        shells.check_completion(command, *words)
    assert outputs > WALKS // 8


def test_every_golden_image(judge: JavaJudge, golden_sets: Path, tmp_path: Path) -> None:
    images = [load(history(directory))[0] for directory in shell_directories(golden_sets)]
    whole = [image for image in images if image.features.metadata_version is not None]
    assert len(whole) > 5
    for image in whole:
        shells = BothShells(judge, tmp_path / "metadata", snapshot_of(image))
        for command in (["find", "/"], ["tree", "/image"], ["ls", "/image/*", "/image/*/*"]):
            shells.check(*command)


def test_completion(shells: BothShells) -> None:
    assert shells.check_completion("") == list(COMMANDS)
    assert shells.check_completion("c") == ["cat", "cd"]
    assert shells.check_completion("ls", "") == ["image/", "local/"]
    assert shells.check_completion("ls", "/local/v") == ["/local/version"]
    assert shells.check_completion("ls", "/x/", "../loc") == ["../local/"]
    for words in (
        *(["cd", "/", ""], ["man", "c"], ["man", "x", "c"], ["pwd", ""], ["help", "l"]),
        *(["cat", "/local"], ["cat", "/local/"], ["cat", "/local/version/"], ["cat", "/no/"]),
        *(["cat", "/local/."], ["cat", "/local/.."], ["cat", "."], ["cat", ".."], ["cat", "/"]),
        *(["cat", "//"], ["cat", "/*"], ["cat", "/image/clientQuotas/"], ["exit", ""]),
    ):
        shells.check_completion(*words)
    shells.check("cd", "/image/topics")
    assert shells.check_completion("ls", "by") == ["byId/", "byName/"]
    for word in ("..", "../", "../f", "./by", "", "byName/", "/l"):
        shells.check_completion("ls", word)


def test_columns(judge: JavaJudge) -> None:
    drawn = random.Random(1)
    for _ in range(LINES):
        letters = string.ascii_letters + "äß€😀"
        names = [
            "".join(drawn.choices(letters, k=drawn.randrange(1, 1 + drawn.choice([3, 9, 40]))))
            for _ in range(drawn.randrange(1, 60))
        ]
        width = drawn.choice([0, 1, 3, 4, 7, 8, 20, 40, 80, 81, 120, 300])
        ours = "".join(f"{line}\n" for line in column_lines(names, width))
        assert f"={ours}" == judge.answer("columns", str(width), *names), (width, names)


LINE_PIECES = [
    *("ls", "cat", " ", "  ", "'", '"', "\\", "/local", "a", "ü", "\t", "!", "{", "}", "#", ";")
]


def test_words_of_lines(judge: JavaJudge) -> None:
    drawn = random.Random(2)
    for _ in range(LINES):
        line = "".join(drawn.choices(LINE_PIECES, k=drawn.randrange(12)))
        words = "\n".join(split_line(line))
        # The reader has one word more, an empty one, where the cursor is after a space.
        assert judge.answer("split", line).rstrip("\n") == f"={words}", line


DESIGNATORS = [
    *("!!", "!1", "!2", "!-1", "!-2", "!0", "!99", "!ls", "!?loc?", "!?at", "!$", "!#", "! ", "!"),
    *("^ls^cat^", "^a^b", "^", "\\!!", "'!!'", "\\u0041!!", "!-", "!1x", "ls", " ", "/local"),
    *("a", "!?no?", "!no", "''", "'", "\\", "^^^", "!\t"),
]  # fmt: skip


def test_history_and_its_designators(judge: JavaJudge) -> None:
    drawn = random.Random(3)
    for _ in range(LINES // 5):
        lines = [
            "".join(drawn.choices(DESIGNATORS, k=drawn.randrange(1, 4)))
            for _ in range(drawn.randrange(1, 12))
        ]
        history = LineHistory()
        printed = ""
        for line in lines:
            expanded = history.expand(line)
            history.add(expanded)
            printed += f"{expanded}\n"
        printed += "".join(f"{number} {line}\n" for number, line in history.last_entries(None))
        assert judge.answer("history", *lines) == f"={printed}", lines
