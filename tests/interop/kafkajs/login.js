// Says whether kafkajs is let in, or why not. The argument is JSON: the `port`, and as far as they
// are used `trusted` and `shown` (files of PEM), `mechanism`, `username`, `password` and `token`.

const fs = require("node:fs");
const { Kafka, logLevel } = require("kafkajs");

const TIMEOUT_MS = 60_000;

const login = JSON.parse(process.argv[2]);

function ssl() {
  const shown = login.shown && fs.readFileSync(login.shown);
  return { ca: [fs.readFileSync(login.trusted)], ...(shown && { cert: shown, key: shown }) };
}

function sasl() {
  const { mechanism, username, password, token } = login;
  const name = mechanism.toLowerCase();
  return token
    ? { mechanism: name, oauthBearerProvider: async () => ({ value: token }) }
    : { mechanism: name, username, password };
}

async function main() {
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${login.port}`],
    connectionTimeout: TIMEOUT_MS,
    authenticationTimeout: TIMEOUT_MS,
    requestTimeout: TIMEOUT_MS,
    retry: { retries: 0 },
    logLevel: logLevel.NOTHING,
    ...(login.trusted && { ssl: ssl() }),
    ...(login.mechanism && { sasl: sasl() }),
  });
  const admin = kafka.admin();
  await admin.connect();
  await admin.listTopics();
  await admin.disconnect();
}

main().then(
  () => console.log("let in"),
  ({ message }) => console.log(message),
);
