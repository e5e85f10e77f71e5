"""`python -m kvorum.codegen sync|generate|release-diff`."""

import argparse
import sys
import zipfile
from pathlib import Path

from kvorum.codegen.errors import CodegenError
from kvorum.codegen.generate import differences, generated_files, write
from kvorum.codegen.release_diff import release_diff
from kvorum.codegen.sync import sync


def main() -> int:
    """Run one command; return 0 for success, 1 for a failure or stale code, 2 for wrong usage."""
    arguments = parser().parse_args()
    try:
        if arguments.command == "sync":
            count = sync(arguments.jar, arguments.schemas)
            sys.stdout.write(f"{count} schemas in {arguments.schemas}\n")
            return 0
        if arguments.command == "release-diff":
            sys.stdout.write(release_diff(arguments.old, arguments.new))
            return 0
        return generate(arguments.schemas, arguments.out, is_check=arguments.check)
    except (CodegenError, OSError, zipfile.BadZipFile) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    whole = argparse.ArgumentParser(prog="python -m kvorum.codegen", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    syncing = commands.add_parser("sync", help="take schemas and error codes from Kafka's jars")
    syncing.add_argument("--jar", action="append", required=True, type=Path)
    generating = commands.add_parser("generate", help="write the message classes")
    generating.add_argument("--check", action="store_true", help="only compare with what is there")
    generating.add_argument("--out", type=Path, default=Path("wire/kvorum/wire"))
    for command in (syncing, generating):
        command.add_argument("--schemas", type=Path, default=Path("json-schemas"))
    comparing = commands.add_parser("release-diff", help="print what differs in two releases' jars")
    for name in ("old", "new"):
        comparing.add_argument(name, type=Path, help="a folder of jars, named after its release")
    return whole


def generate(schemas: Path, out: Path, *, is_check: bool) -> int:
    """Write the generated files, or compare them and print the differences."""
    files = generated_files(schemas)
    if not is_check:
        write(files, out)
        return 0
    found = differences(files, out)
    for line in found:
        sys.stderr.write(f"{line}; run 'make generate'\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
