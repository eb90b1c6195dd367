// Handles events with the library that the benchmarks of peers compare, or with
// the AWS SDK alone. It speaks as worker.py does.

const { randomUUID } = require("node:crypto");
const { writeSync } = require("node:fs");
const readline = require("node:readline");
const { setTimeout } = require("node:timers/promises");
const { DynamoDBClient, UpdateItemCommand } = require("@aws-sdk/client-dynamodb");

const table = "locks";
const lease = Number(process.argv[3]);
const again = 50;
const patience = 30_000;

let work = 0;
let measured = {};

const now = () => performance.timeOrigin + performance.now();

async function handler() {
  measured.ran++;
  measured.began = now();
  if (work < 0) {
    writeSync(1, `${JSON.stringify(measured)}\n`);
    process.exit(1);
  }
  if (work) {
    await setTimeout(work);
  }
  measured.ended = now();
}

// each handles the events of a delivery one after the other.
const each = (cycle) => async (names) => {
  for (const name of names) {
    await cycle(name);
  }
};

function raw() {
  const client = new DynamoDBClient();
  const update = (name, rest) =>
    client.send(new UpdateItemCommand({
      TableName: table,
      Key: { lock: { S: name } },
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      ...rest,
    }));
  return each(async (name) => {
    const nonce = { S: randomUUID() };
    const began = Date.now();
    await update(name, {
      UpdateExpression: "SET nonce = :n, expires = :e",
      ConditionExpression: "attribute_not_exists(nonce) OR expires < :now OR nonce = :n",
      ExpressionAttributeValues: { ":n": nonce, ":e": { N: `${began + lease}` }, ":now": { N: `${began}` } },
    });
    await handler();
    await update(name, {
      UpdateExpression: "REMOVE nonce, expires",
      ConditionExpression: "nonce = :n",
      ExpressionAttributeValues: { ":n": nonce },
    });
  });
}

const context = {
  functionName: "peers",
  invokedFunctionArn: "arn:aws:lambda:eu-central-1:123456789012:function:peers",
  awsRequestId: "request",
  memoryLimitInMB: "128",
  getRemainingTimeInMillis: () => lease,
};

function powertools() {
  const { IdempotencyConfig, makeIdempotent } = require("@aws-lambda-powertools/idempotency");
  const { DynamoDBPersistenceLayer } = require("@aws-lambda-powertools/idempotency/dynamodb");
  const wrapped = makeIdempotent(handler, {
    persistenceStore: new DynamoDBPersistenceLayer({ tableName: table, keyAttr: "lock" }),
    config: new IdempotencyConfig({ eventKeyJmesPath: "id" }),
  });
  return each((name) => wrapped({ id: name }, context));
}

function powertoolsBatch() {
  const { BatchProcessor, EventType, processPartialResponse } = require("@aws-lambda-powertools/batch");
  const { IdempotencyConfig, makeIdempotent } = require("@aws-lambda-powertools/idempotency");
  const { DynamoDBPersistenceLayer } = require("@aws-lambda-powertools/idempotency/dynamodb");
  const config = new IdempotencyConfig({ eventKeyJmesPath: "messageId" });
  config.registerLambdaContext(context);
  const handle = makeIdempotent(handler, {
    persistenceStore: new DynamoDBPersistenceLayer({ tableName: table, keyAttr: "lock" }),
    config,
  });
  const processor = new BatchProcessor(EventType.SQS);
  return async (names) => {
    const Records = names.map((messageId) => ({ messageId, body: "{}", eventSource: "aws:sqs" }));
    const answer = await processPartialResponse({ Records }, handle, processor, { context });
    if (answer.batchItemFailures.length > 0) {
      throw new Error(JSON.stringify(answer));
    }
  };
}

const answer = (values) => console.log(JSON.stringify(values));

// insist delivers until the delivery succeeds.
async function insist(tool, names) {
  for (const until = performance.now() + patience; ;) {
    measured.tries++;
    try {
      return await tool(names);
    } catch (error) {
      if (performance.now() > until) {
        throw error;
      }
      measured.failed = String(error);
    }
    await setTimeout(again);
  }
}

async function main() {
  const tool = { raw, powertools, powertools_batch: powertoolsBatch }[process.argv[2]]();
  answer({ runtime: `Node.js ${process.versions.node}` });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [prefix, ...numbers] = line.split(" ");
    const [deliveries, events, takes] = numbers.map(Number);
    work = takes;
    measured = { ran: 0, tries: 0, took: [] };
    const before = process.cpuUsage();
    for (let i = 0; i < deliveries; i++) {
      const names = Array.from({ length: events }, (_, n) => `${prefix}${i}/${n}`);
      measured.asked = now();
      const began = performance.now();
      await insist(tool, names);
      measured.took.push(performance.now() - began);
    }
    const { user, system } = process.cpuUsage(before);
    answer({ ...measured, cpu: (user + system) / 1000 });
  }
}

main();
