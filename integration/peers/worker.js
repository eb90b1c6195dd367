// Handles events with the library that BenchmarkPeers compares, or with the
// AWS SDK alone. It speaks as worker.py does.

const { randomUUID } = require("node:crypto");
const readline = require("node:readline");
const { setTimeout } = require("node:timers/promises");
const { DynamoDBClient, UpdateItemCommand } = require("@aws-sdk/client-dynamodb");

const table = "locks";
const minute = 60_000;

let ran = 0;
let work = 0;

async function handler() {
  ran++;
  if (work) {
    await setTimeout(work);
  }
}

function raw() {
  const client = new DynamoDBClient();
  const update = (name, rest) =>
    client.send(new UpdateItemCommand({
      TableName: table,
      Key: { lock: { S: name } },
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      ...rest,
    }));
  return async (name) => {
    const nonce = { S: randomUUID() };
    const now = Date.now();
    await update(name, {
      UpdateExpression: "SET nonce = :n, expires = :e",
      ConditionExpression: "attribute_not_exists(nonce) OR expires < :now OR nonce = :n",
      ExpressionAttributeValues: { ":n": nonce, ":e": { N: `${now + minute}` }, ":now": { N: `${now}` } },
    });
    await handler();
    await update(name, {
      UpdateExpression: "REMOVE nonce, expires",
      ConditionExpression: "nonce = :n",
      ExpressionAttributeValues: { ":n": nonce },
    });
  };
}

const context = {
  functionName: "peers",
  invokedFunctionArn: "arn:aws:lambda:eu-central-1:123456789012:function:peers",
  awsRequestId: "request",
  memoryLimitInMB: "128",
  getRemainingTimeInMillis: () => 10 * minute,
};

function powertools() {
  const { IdempotencyConfig, makeIdempotent } = require("@aws-lambda-powertools/idempotency");
  const { DynamoDBPersistenceLayer } = require("@aws-lambda-powertools/idempotency/dynamodb");
  const wrapped = makeIdempotent(handler, {
    persistenceStore: new DynamoDBPersistenceLayer({ tableName: table, keyAttr: "lock" }),
    config: new IdempotencyConfig({ eventKeyJmesPath: "id" }),
  });
  return (name) => wrapped({ id: name }, context);
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

async function main() {
  const tool = { raw, powertools, powertools_batch: powertoolsBatch }[process.argv[2]]();
  answer({ runtime: `Node.js ${process.versions.node}` });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [prefix, deliveries, events] = line.split(" ");
    ran = 0;
    work = Number(events) > 1 ? 1 : 0;
    const took = [];
    const before = process.cpuUsage();
    for (let i = 0; i < Number(deliveries); i++) {
      const names = Array.from({ length: Number(events) }, (_, n) => `${prefix}${i}/${n}`);
      const began = performance.now();
      await tool(names.length > 1 ? names : names[0]);
      took.push(performance.now() - began);
    }
    const { user, system } = process.cpuUsage(before);
    answer({ took, cpu: (user + system) / 1000, ran });
  }
}

main();
