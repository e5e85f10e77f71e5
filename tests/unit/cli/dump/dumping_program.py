"""Dump logs by some processes: ``dumping_program.py COUNT PART_BYTES LOG,LOG,... OPTION ...``."""

import sys

from kvorum.cli.dump.arguments import parse_words
from kvorum.cli.dump.errors import UNREADABLE
from kvorum.cli.dump.files import DumpOptions, JavaFile
from kvorum.cli.dump.processes import print_log_by
from kvorum.inspection.reading import MappedFile


def main() -> None:
    count, part_bytes, names, *words = sys.argv[1:]
    options = DumpOptions(parse_words(words))
    for file in map(JavaFile, names.split(",")):
        dump = options.log_dump(file.name)
        try:
            print_log_by(int(count), dump, MappedFile(file.path), part_bytes=int(part_bytes))
        except UNREADABLE as error:
            sys.stdout.write(f"error {error!r}\n")
            continue
        sys.stdout.write(f"gaps {dump.gaps.pairs}\n")


if __name__ == "__main__":
    main()
