// Handles events with the library that is compared, or with the AWS SDK alone.
// It speaks as worker.py does.

const { randomUUID } = require("node:crypto");
const readline = require("node:readline");
const { setTimeout } = require("node:timers/promises");
const { DynamoDBClient, UpdateItemCommand } = require("@aws-sdk/client-dynamodb");

const table = "locks";
const lease = Number(process.argv[3]);
const again = 50;
const patience = 30_000;
const waits = -1; // the work of a case
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

let work = 0;
let measured = {};

const now = () => performance.timeOrigin + performance.now();

async function handler() {
  measured.ran++;
  measured.began = now();
  if (work === waits) {
    answer(measured);
    if ((await lines.next()).value === "fail") {
      throw new Error("the handler failed");
    }
  } else if (work) {
    await setTimeout(work);
  }
  measured.ended = now();
  return work === waits ? String(process.pid) : undefined;
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

function powertoolsCase() {
  const { IdempotencyConfig, makeIdempotent } = require("@aws-lambda-powertools/idempotency");
  const { DynamoDBPersistenceLayer } = require("@aws-lambda-powertools/idempotency/dynamodb");
  const wrapped = makeIdempotent(handler, {
    persistenceStore: new DynamoDBPersistenceLayer({ tableName: table, keyAttr: "lock" }),
    config: new IdempotencyConfig({ eventKeyJmesPath: "event", payloadValidationJmesPath: "payload" }),
  });
  return (event) => wrapped(event, context);
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

// insist delivers until the delivery succeeds, or its patience ends.
async function insist(tool, delivery, forMs = patience) {
  for (const until = performance.now() + forMs; ;) {
    measured.tries++;
    measured.failed = "";
    try {
      return await tool(delivery);
    } catch (error) {
      measured.failed = String(error);
      if (performance.now() > until) {
        return null;
      }
    }
    await setTimeout(again);
  }
}

async function main() {
  const tool = { raw, powertools, powertools_case: powertoolsCase, powertools_batch: powertoolsBatch }[process.argv[2]]();
  answer({ runtime: `Node.js ${process.versions.node}` });
  for await (const line of lines) {
    if (line.startsWith("{")) {
      const event = JSON.parse(line);
      work = waits;
      measured = { ran: 0, tries: 0, asked: now() };
      const result = await insist(tool, event, event.patience);
      answer({ ...measured, result, over: true });
      continue;
    }
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
