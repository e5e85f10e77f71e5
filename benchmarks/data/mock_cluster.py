"""Librdkafka's mock cluster, kept by a producer that does nothing else.

It prints the address of its broker, and ends with its standard input.
"""

import sys
from typing import Any

from confluent_kafka import Producer

WAIT_S = 10.0


def main() -> None:
    # The stub of list_topics does not say what it returns.
    keeper: Any = Producer({"test.mock.num.brokers": 1})
    brokers = keeper.list_topics(timeout=WAIT_S).brokers.values()
    print(",".join(f"{one.host}:{one.port}" for one in brokers), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
