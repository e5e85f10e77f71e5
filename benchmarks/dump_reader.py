"""Reads what kafka-dump-log prints of a metadata log; a program of its own, at the end of a pipe.

Parses the payload of each record, as a script that works with the records must, and prints how
many there were.
"""

import json
import sys

PAYLOAD = " payload: "


def main() -> None:
    """Count the records of standard input."""
    count = 0
    for line in sys.stdin:
        if line.startswith("| offset: "):
            _, found, payload = line.partition(PAYLOAD)
            if found:
                json.loads(payload)
            count += 1
    print(count)


main()
