"""Handles events with one of the libraries that BenchmarkPeers compares.

Its argument is the tool. It answers each line "prefix deliveries events" on its
input with one line of JSON: the time of each delivery of so many events in ms,
the CPU time of all of them in ms, and how many handlers ran. With more than one
event, a handler takes 1 ms.
"""

import json
import os
import platform
import sys
import time
import uuid

import boto3

TABLE = "locks"
MINUTE = 60_000

ran = 0
work = 0


def handler(event, context):
    global ran
    ran += 1
    if work:
        time.sleep(work)


def raw():
    client = boto3.client("dynamodb")

    def update(name, **rest):
        client.update_item(
            TableName=TABLE,
            Key={"lock": {"S": name}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **rest,
        )

    def cycle(name):
        nonce, now = {"S": uuid.uuid4().hex}, time.time_ns() // 1_000_000
        update(
            name,
            UpdateExpression="SET nonce = :n, expires = :e",
            ConditionExpression="attribute_not_exists(nonce) OR expires < :now OR nonce = :n",
            ExpressionAttributeValues={
                ":n": nonce,
                ":e": {"N": str(now + MINUTE)},
                ":now": {"N": str(now)},
            },
        )
        handler(name, None)
        update(
            name,
            UpdateExpression="REMOVE nonce, expires",
            ConditionExpression="nonce = :n",
            ExpressionAttributeValues={":n": nonce},
        )

    return cycle


class Context:
    """What Powertools asks of a function's context."""

    function_name = "peers"

    def get_remaining_time_in_millis(self):
        return 10 * MINUTE


def powertools():
    from aws_lambda_powertools.utilities.idempotency import (
        DynamoDBPersistenceLayer,
        IdempotencyConfig,
        idempotent,
    )

    store = DynamoDBPersistenceLayer(table_name=TABLE, key_attr="lock")
    config = IdempotencyConfig(event_key_jmespath="id")
    wrapped = idempotent(handler, persistence_store=store, config=config)
    return lambda name: wrapped({"id": name}, Context())


def powertools_batch():
    from aws_lambda_powertools.utilities.batch import (
        BatchProcessor,
        EventType,
        process_partial_response,
    )
    from aws_lambda_powertools.utilities.idempotency import (
        DynamoDBPersistenceLayer,
        IdempotencyConfig,
        idempotent_function,
    )

    store = DynamoDBPersistenceLayer(table_name=TABLE, key_attr="lock")
    config = IdempotencyConfig(event_key_jmespath="messageId")
    config.register_lambda_context(Context())
    processor = BatchProcessor(event_type=EventType.SQS)

    @idempotent_function(
        data_keyword_argument="record", persistence_store=store, config=config
    )
    def handle(record):
        handler(record, None)

    def deliver(names):
        records = [
            {"messageId": name, "body": "{}", "eventSource": "aws:sqs"}
            for name in names
        ]
        answer = process_partial_response(
            event={"Records": records},
            record_handler=handle,
            processor=processor,
            context=Context(),
        )
        if answer["batchItemFailures"]:
            raise RuntimeError(answer)

    return deliver


def dynamo_dlm():
    from dynamo_dlm import DynamoDbLock

    boto3.client("dynamodb").create_table(
        TableName="dynamo_dlm_locks",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "resource_id", "KeyType": "HASH"},
            {"AttributeName": "concurrency_id", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "resource_id", "AttributeType": "S"},
            {"AttributeName": "concurrency_id", "AttributeType": "N"},
        ],
    )

    def cycle(name):
        with DynamoDbLock(name, wait_forever=False):
            handler(name, None)

    return cycle


def dyndbmutex():
    from dyndbmutex.dyndbmutex import DynamoDbMutex

    def cycle(name):
        with DynamoDbMutex(name, region_name=os.environ["AWS_REGION"]):
            handler(name, None)

    return cycle


def answer(**values):
    print(json.dumps(values), flush=True)


def main():
    global ran, work
    tool = globals()[sys.argv[1]]()
    answer(runtime="Python " + platform.python_version())
    for line in sys.stdin:
        prefix, deliveries, events = line.split()
        events = int(events)
        work = 0.001 if events > 1 else 0
        ran, took, cpu = 0, [], time.process_time()
        for i in range(int(deliveries)):
            names = [f"{prefix}{i}/{n}" for n in range(events)]
            began = time.perf_counter()
            tool(names if events > 1 else names[0])
            took.append((time.perf_counter() - began) * 1000)
        answer(took=took, cpu=(time.process_time() - cpu) * 1000, ran=ran)


main()
