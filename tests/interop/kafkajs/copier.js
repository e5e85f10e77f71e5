// Copies records in transactions with kafkajs: SERVERS NAME SOURCE TARGET HOLD_MS.
//
// A transaction has copies and the group's offset, and is held open for a while. On any error the
// program ends; its next life begins where the group is.

const { setTimeout: hold } = require("node:timers/promises");
const { Kafka, logLevel } = require("kafkajs");

const SESSION_TIMEOUT_MS = 6000;

const [servers, name, source, target, holdMs] = process.argv.slice(2);

function end(error) {
  console.error(error);
  process.exit(1);
}

async function copy(producer, { topic, partition, messages }) {
  const transaction = await producer.transaction();
  await transaction.send({
    topic: target,
    messages: messages.map(({ value }) => ({ value, partition })),
  });
  const next = BigInt(messages[messages.length - 1].offset) + 1n;
  await transaction.sendOffsets({
    consumerGroupId: name,
    topics: [{ topic, partitions: [{ partition, offset: next.toString() }] }],
  });
  await hold(Number(holdMs));
  await transaction.commit();
}

async function main() {
  const kafka = new Kafka({ brokers: servers.split(","), logLevel: logLevel.ERROR });
  const producer = kafka.producer({
    transactionalId: name,
    idempotent: true,
    maxInFlightRequests: 1,
  });
  await producer.connect();
  const consumer = kafka.consumer({ groupId: name, sessionTimeout: SESSION_TIMEOUT_MS });
  consumer.on(consumer.events.CRASH, ({ payload }) => end(payload.error));
  await consumer.connect();
  await consumer.subscribe({ topic: source, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: ({ batch }) => copy(producer, batch).catch(end),
  });
}

main().catch(end);
