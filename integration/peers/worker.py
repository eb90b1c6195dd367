"""Handles events with one of the libraries that are compared.

Its arguments are the tool and the length of a lease in ms. It answers each line
"prefix deliveries events work" on its input, once it has delivered so many
events so many times, with one line of JSON. What it measured is in ms, moments
since 1970. A handler takes work ms. A delivery that fails is made again every
50 ms.

A line of JSON is one event of a case, which is delivered again for no more than
its patience in ms. Its handler writes a line of its own, and waits for one that
says how it ends: "fail", or anything else.
"""

import json
import logging
import os
import platform
import sys
import time
import uuid

import boto3

TABLE = "locks"
LEASE = int(sys.argv[2])
AGAIN = 0.05
PATIENCE = 30
WAITS = -1  # the work of a case

work = 0
measured = {}


def now():
    return time.time_ns() / 1e6


def handler(event, context):
    measured["ran"] += 1
    measured["began"] = now()
    if work == WAITS:
        answer(measured)
        if sys.stdin.readline().strip() == "fail":
            raise RuntimeError("the handler failed")
    elif work:
        time.sleep(work / 1000)
    measured["ended"] = now()
    return str(os.getpid()) if work == WAITS else None


def each(cycle):
    """Returns what handles the events of a delivery one after the other."""

    def deliver(names):
        for name in names:
            cycle(name)

    return deliver


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
        nonce, began = {"S": uuid.uuid4().hex}, int(now())
        update(
            name,
            UpdateExpression="SET nonce = :n, expires = :e",
            ConditionExpression="attribute_not_exists(nonce) OR expires < :now OR nonce = :n",
            ExpressionAttributeValues={
                ":n": nonce,
                ":e": {"N": str(began + LEASE)},
                ":now": {"N": str(began)},
            },
        )
        handler(name, None)
        update(
            name,
            UpdateExpression="REMOVE nonce, expires",
            ConditionExpression="nonce = :n",
            ExpressionAttributeValues={":n": nonce},
        )

    return each(cycle)


class Context:
    """What Powertools asks of a function's context."""

    function_name = "peers"

    def get_remaining_time_in_millis(self):
        return LEASE


def powertools():
    from aws_lambda_powertools.utilities.idempotency import (
        DynamoDBPersistenceLayer,
        IdempotencyConfig,
        idempotent,
    )

    store = DynamoDBPersistenceLayer(table_name=TABLE, key_attr="lock")
    config = IdempotencyConfig(event_key_jmespath="id")
    wrapped = idempotent(handler, persistence_store=store, config=config)
    return each(lambda name: wrapped({"id": name}, Context()))


def powertools_case():
    from aws_lambda_powertools.utilities.idempotency import (
        DynamoDBPersistenceLayer,
        IdempotencyConfig,
        idempotent,
    )

    store = DynamoDBPersistenceLayer(table_name=TABLE, key_attr="lock")
    config = IdempotencyConfig(
        event_key_jmespath="event", payload_validation_jmespath="payload"
    )
    wrapped = idempotent(handler, persistence_store=store, config=config)
    return lambda event: wrapped(event, Context())


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

    def cycle(name):
        with DynamoDbLock(name, duration=LEASE // 1000):
            handler(name, None)

    return each(cycle)


def dyndbmutex():
    from dyndbmutex.dyndbmutex import DynamoDbMutex

    logging.getLogger("dyndbmutex").setLevel(logging.ERROR)

    def cycle(name):
        mutex = DynamoDbMutex(name, timeoutms=LEASE, region_name=os.environ["AWS_REGION"])
        while not mutex.lock():
            time.sleep(AGAIN)
        handler(name, None)
        mutex.release()

    return each(cycle)


def answer(values):
    print(json.dumps(values), flush=True)


def insist(tool, delivery, patience=PATIENCE):
    """Delivers until the delivery succeeds, or patience ends."""
    until = time.monotonic() + patience
    while True:
        measured["tries"] += 1
        measured["failed"] = ""
        try:
            return tool(delivery)
        except Exception as error:
            measured["failed"] = repr(error)
            if time.monotonic() > until:
                return None
        time.sleep(AGAIN)


def main():
    global measured, work
    tool = globals()[sys.argv[1]]()
    answer({"runtime": "Python " + platform.python_version()})
    for line in sys.stdin:
        if line.startswith("{"):
            event, work = json.loads(line), WAITS
            measured = {"ran": 0, "tries": 0, "asked": now()}
            measured["result"] = insist(tool, event, event["patience"] / 1000)
            answer({**measured, "over": True})
            continue
        prefix, *numbers = line.split()
        deliveries, events, work = map(int, numbers)
        measured = {"ran": 0, "tries": 0, "took": []}
        cpu = time.process_time()
        for i in range(deliveries):
            names = [f"{prefix}{i}/{n}" for n in range(events)]
            measured["asked"], began = now(), time.perf_counter()
            insist(tool, names)
            measured["took"].append((time.perf_counter() - began) * 1000)
        measured["cpu"] = (time.process_time() - cpu) * 1000
        answer(measured)


main()
