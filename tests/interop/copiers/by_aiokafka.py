"""Copies records in transactions with aiokafka."""

import asyncio
import importlib
from typing import Any

from tests.interop.copiers.arguments import (
    AT_ONCE,
    POLL_S,
    CopierArguments,
    consumer_settings,
    copier_arguments,
)


async def copy_some(consumer: Any, producer: Any, arguments: CopierArguments) -> None:
    """Copy what a poll gives, if anything, in a transaction."""
    found = await consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=AT_ONCE)
    if not found:
        return
    async with producer.transaction():
        for records in found.values():
            for record in records:
                await producer.send_and_wait(
                    arguments.target, record.value, partition=record.partition
                )
        offsets = {place: records[-1].offset + 1 for place, records in found.items()}
        await producer.send_offsets_to_transaction(offsets, arguments.name)
        await asyncio.sleep(arguments.hold_s)


async def main(arguments: CopierArguments) -> None:
    """Copy until an error or a signal."""
    library: Any = importlib.import_module("aiokafka")
    producer = library.AIOKafkaProducer(
        bootstrap_servers=arguments.servers, transactional_id=arguments.name
    )
    consumer = library.AIOKafkaConsumer(arguments.source, **consumer_settings(arguments))
    async with producer, consumer:
        while True:
            await copy_some(consumer, producer, arguments)


if __name__ == "__main__":
    asyncio.run(main(copier_arguments()))
