"""Dump logs by some processes: ``dumping_program.py COUNT PART_BYTES LOG,LOG,... OPTION ...``."""

import sys

from kvorum.cli.dump.arguments import parse_words
from kvorum.cli.dump.errors import UNREADABLE
from kvorum.cli.dump.java_file import JavaFile
from kvorum.cli.dump.options import DumpOptions
from kvorum.cli.dump.processes import DumpProcesses


def main() -> None:
    """Print each log, and between them the gaps or the error; processes that failed are new."""
    count, part_bytes, names, *words = sys.argv[1:]
    waiting = names.split(",")
    while waiting:
        with DumpProcesses(words, int(count), int(part_bytes)) as processes:
            while waiting:
                file = JavaFile(waiting.pop(0))
                dump = DumpOptions(parse_words(words)).log_dump(file.name)
                try:
                    processes.print_log(dump, file)
                except UNREADABLE as error:
                    sys.stdout.write(f"error {error!r}\n")
                    break
                sys.stdout.write(f"gaps {dump.gaps.pairs}\n")


if __name__ == "__main__":
    main()
