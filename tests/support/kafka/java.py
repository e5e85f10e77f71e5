"""Java for the tests: sources compiled against Kafka's jars, and Kafka's own command-line tools."""

import base64
import hashlib
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tests.support.kafka.fetch_jars import SHELL_RELEASE
from tests.support.waiting import PATIENCE_S

# Started often and living briefly: the simplest collector and the first compiler start quickest.
FAST_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
JAVA_SOURCES = Path(__file__).parents[1] / "java"
"""Programs in Java that ask Kafka's own classes."""
OLDER_LOG_SETTINGS = Path(__file__).with_name("log4j.properties")
SHELL: Final = "kafka-metadata-shell"
# The class behind each script of Kafka's distribution.
TOOL_CLASSES: Final = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "org.apache.kafka.tools.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"),
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    SHELL: "org.apache.kafka.shell.MetadataShell",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime together with the jars of a Kafka release."""

    executable: Path
    jars: Path

    def command(
        self,
        main_class: str,
        *arguments: str,
        heap_mb: int = 256,
        log_level: str = "WARN",
        classes: Path | None = None,
    ) -> list[str]:
        """Return the command line that runs a class with its arguments."""
        class_path = f"{self.jars}/*" if classes is None else f"{classes}:{self.jars}/*"
        return [
            str(self.executable),
            *FAST_START,
            f"-Xmx{heap_mb}m",
            f"-Dlog4j2.configurationFile={LOG_SETTINGS}",
            f"-Dlog4j.configuration=file:{OLDER_LOG_SETTINGS}",
            f"-Dkvorum.tests.log.level={log_level}",
            "-cp",
            class_path,
            main_class,
            *arguments,
        ]

    def program(
        self, name: str, *arguments: str, heap_mb: int = 256, log_level: str = "OFF"
    ) -> list[str]:
        """Return the command line that runs a program of `JAVA_SOURCES`, once it is compiled."""
        source = JAVA_SOURCES / f"{name}.java"
        package = re.search(r"^package (\S+);", source.read_text(), re.MULTILINE)
        main_class = f"{package[1]}.{name}" if package else name
        classes = self.compile(source)
        return self.command(
            main_class, *arguments, heap_mb=heap_mb, log_level=log_level, classes=classes
        )

    def answers(
        self, name: str, *arguments: str, asked: Iterable[str] = (), heap_mb: int = 256
    ) -> list[str]:
        """Return the lines that a program of `JAVA_SOURCES` writes when it is given others."""
        command = self.program(name, *arguments, heap_mb=heap_mb)
        given = "".join(f"{line}\n" for line in asked).encode()
        done = subprocess.run(command, input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:].decode()
        # Texts in a line may contain line separators other than the line feed.
        lines = done.stdout.decode().split("\n")
        return lines if lines[-1] else lines[:-1]

    def compile(self, source: Path) -> Path:
        """Return the folder of a source's classes, compiled unless this very text already was.

        A folder with the name of the source holds the sources of other classes that it uses. The
        compiler is among the jars, so that a runtime without one will do.
        """
        sources = [source, *sorted(source.with_suffix("").glob("*.java"))]
        digest = hashlib.sha256(b"".join(one.read_bytes() for one in sources)).hexdigest()[:16]
        target = self.jars.parent / f"{source.stem}-{self.jars.name}-{digest}"
        if target.is_dir():
            return target
        compiler = "org.eclipse.jdt.internal.compiler.batch.Main"
        with tempfile.TemporaryDirectory(dir=self.jars.parent) as name:
            classes = Path(name) / "classes"
            options = ["-source", "17", "-target", "17", "-nowarn", "-d", str(classes)]
            jars = ":".join(str(jar) for jar in sorted(self.jars.glob("*.jar")))
            done = subprocess.run(
                self.command(compiler, *options, "-classpath", jars, *map(str, sources)),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise RuntimeError(f"{source} does not compile:\n{done.stdout}{done.stderr}")
            # Another test process may have been quicker; its classes are the same.
            if not target.is_dir():
                classes.rename(target)
        return target


def shell_java(java: Java) -> Java:
    """Return a Java runtime with the jars of the latest release that has the metadata shell."""
    return Java(java.executable, java.jars.parent / SHELL_RELEASE)


class ToolDidNotAnswerError(Exception):
    """A tool hung or its virtual machine ended."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The end of a tool, and its output."""

    exit_code: int
    stdout: str
    stderr: str


class ToolRunner:
    """Runs tools in one Java process that starts with the first of them; use as a context.

    The metadata shell runs in another one, with the jars of the latest release that has it.
    """

    def __init__(self, java: Java) -> None:
        self._java = java
        self._process: subprocess.Popen[str] | None = None
        self._shell: ToolRunner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, tool: str, *arguments: str, stdin: str = "") -> ToolResult:
        if tool == SHELL and self._java.jars.name != SHELL_RELEASE:
            if self._shell is None:
                self._shell = ToolRunner(shell_java(self._java))
            return self._shell.run(tool, *arguments, stdin=stdin)
        process = self._started()
        parts = [TOOL_CLASSES.get(tool, tool), stdin, *arguments]
        line = " ".join(base64.b64encode(part.encode()).decode() for part in parts)
        assert process.stdin is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        code, out, err = self._answer(process, tool).split(" ")
        return ToolResult(int(code), _decoded(out), _decoded(err))

    def printed(self, tool: str, *arguments: str, stdin: str = "") -> str:
        """Run a tool that has to succeed; return what it prints to standard output."""
        done = self.run(tool, *arguments, stdin=stdin)
        assert done.exit_code == 0, (tool, arguments, done)
        return done.stdout

    def dumped(self, file: Path, *options: str) -> str:
        """Return what kafka-dump-log, which may complain of nothing, prints about a file."""
        done = self.run("kafka-dump-log", *options, "--files", str(file))
        assert (done.exit_code, done.stderr) == (0, ""), (file, done)
        return done.stdout

    def close(self) -> None:
        if self._shell is not None:
            self._shell.close()
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.communicate()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._java.program("ToolServer", log_level="WARN"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._process

    def _answer(self, process: subprocess.Popen[str], tool: str) -> str:
        assert process.stdout is not None
        line = _within(PATIENCE_S, process.stdout.readline, otherwise=process.kill)
        if not line:
            self.close()
            raise ToolDidNotAnswerError(f"{tool} gave no answer within {PATIENCE_S} s")
        return line.rstrip("\n")


def _within(limit_s: float, wait: Callable[[], str], *, otherwise: Callable[[], None]) -> str:
    """Wait for a line; when the time is up do something that makes the wait end."""
    alarm = threading.Timer(limit_s, otherwise)
    alarm.start()
    try:
        return wait()
    finally:
        alarm.cancel()


def _decoded(part: str) -> str:
    return base64.b64decode(part).decode()
