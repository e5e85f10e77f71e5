"""Java for the tests: where it is, and Java sources compiled against Kafka's jars."""

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Started often and living briefly: the simplest collector and the first compiler start quickest.
FAST_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
JAVA_SOURCES = Path(__file__).parents[1] / "java"
"""Programs in Java that ask Kafka's own classes."""
OLDER_LOG_SETTINGS = Path(__file__).with_name("log4j.properties")


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

        The compiler is among the jars, so that a runtime without one will do.
        """
        digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
        target = self.jars.parent / f"{source.stem}-{self.jars.name}-{digest}"
        if target.is_dir():
            return target
        compiler = "org.eclipse.jdt.internal.compiler.batch.Main"
        with tempfile.TemporaryDirectory(dir=self.jars.parent) as name:
            classes = Path(name) / "classes"
            options = ["-source", "17", "-target", "17", "-nowarn", "-d", str(classes)]
            jars = ":".join(str(jar) for jar in sorted(self.jars.glob("*.jar")))
            done = subprocess.run(
                self.command(compiler, *options, "-classpath", jars, str(source)),
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
