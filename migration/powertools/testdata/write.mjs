// Writes what the tests read of Powertools for AWS Lambda (TypeScript).
//
//	npm install @aws-lambda-powertools/idempotency@2.35.0 @aws-sdk/client-dynamodb@3.1169.0
//	AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 node write.mjs
//
// The endpoint is an empty DynamoDB, such as dynoxide or DynamoDB Local.
import { readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

Object.assign(process.env, { AWS_LAMBDA_FUNCTION_NAME: 'orders', AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' });

const { IdempotencyConfig, makeIdempotent } = await import('@aws-lambda-powertools/idempotency');
const { BasePersistenceLayer } = await import('@aws-lambda-powertools/idempotency/persistence');
const { DynamoDBPersistenceLayer } = await import('@aws-lambda-powertools/idempotency/dynamodb');
const { CreateTableCommand, DynamoDBClient, paginateScan } = await import('@aws-sdk/client-dynamodb');

const context = { getRemainingTimeInMillis: () => 60_000 };

// Recorder keeps the id of the last record.
class Recorder extends BasePersistenceLayer {
  id = '-';
  async _putRecord(record) { this.id = record.idempotencyKey; }
  async _getRecord() {}
  async _updateRecord() {}
  async _deleteRecord() {}
}

// keys writes the id of each part, or "-" if there is no record.
async function keys() {
  let out = '';
  for (const text of readFileSync('parts.txt', 'utf8').trimEnd().split('\n')) {
    const recorder = new Recorder();
    const handler = makeIdempotent(async () => null, { persistenceStore: recorder, config: new IdempotencyConfig({ eventKeyJmesPath: 'part' }) });
    await handler(JSON.parse(`{"part":${text}}`), context);
    out += `${recorder.id} ${text}\n`;
  }
  writeFileSync('keys-typescript.txt', out);
}

const event = (i) => `{"order": ${i}, "total": ${i % 8}.50, "customer": {"name": "Zoë ${i % 50}", "VIP": ${i % 3 === 0}}, "lines": [${i % 7}, ${i % 5}.0]}`;

// table writes the table after 1,000 events, of which every tenth is in
// progress.
async function table() {
  const client = new DynamoDBClient({});
  await client.send(new CreateTableCommand({
    TableName: 'idempotency', BillingMode: 'PAY_PER_REQUEST',
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }], AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
  }));
  const stores = [];
  const wrapped = (handler) => {
    const persistenceStore = new DynamoDBPersistenceLayer({ tableName: 'idempotency', awsSdkV3Client: client });
    stores.push(persistenceStore);
    return makeIdempotent(handler, { persistenceStore, config: new IdempotencyConfig({ expiresAfterSeconds: 86_400, payloadValidationJmesPath: 'total' }) });
  };
  for (let i = 0; i < 1000; i++) {
    if (i % 10 > 0) {
      await wrapped(async (e) => ({ order: e.order, status: 'shipped' }))(JSON.parse(event(i)), context);
      continue;
    }
    // Every second event in progress has no context, so nothing says when it ends.
    await new Promise((started) => {
      wrapped(async () => { started(); return new Promise(() => {}); })(JSON.parse(event(i)), i % 20 === 0 ? undefined : context);
    });
  }
  const rows = new Map();
  for await (const page of paginateScan({ client }, { TableName: 'idempotency' })) {
    for (const item of page.Items) rows.set(item.id.S, item);
  }
  const lines = stores.map((store, i) => `${event(i)}\t${JSON.stringify(rows.get(store.getHashedIdempotencyKey(JSON.parse(event(i)))))}\n`);
  writeFileSync('table-typescript.gz', gzipSync(lines.join('')));
}

await keys();
await table();
process.exit(0); // with 100 handlers at work
