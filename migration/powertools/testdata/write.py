"""Writes what the tests read of Powertools for AWS Lambda (Python).

pip install aws-lambda-powertools==3.37.0 boto3==1.44.8
AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 python write.py

The endpoint is an empty DynamoDB, such as dynoxide or DynamoDB Local.
"""

import gzip
import json
import os
import threading
import time

os.environ |= {"AWS_LAMBDA_FUNCTION_NAME": "orders", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}

import boto3
from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer, DynamoDBPersistenceLayer, IdempotencyConfig, idempotent


class Context:
    def get_remaining_time_in_millis(self):
        return 60_000


class Recorder(BasePersistenceLayer):
    """Keeps the id of the last record."""

    id = "-"

    def _put_record(self, data_record):
        self.id = data_record.idempotency_key

    def _get_record(self, idempotency_key): ...
    def _update_record(self, data_record): ...
    def _delete_record(self, data_record): ...


def keys():
    """Writes the id of each part, or "-" if there is no record."""
    with open("parts.txt") as parts, open("keys-python.txt", "w") as out:
        for text in parts:
            recorder = Recorder()

            @idempotent(persistence_store=recorder, config=IdempotencyConfig(event_key_jmespath="part"), key_prefix="orders")
            def handler(event, context):
                return None

            handler(json.loads('{"part":' + text + "}"), Context())
            out.write(recorder.id + " " + text)


def event(i):
    return f'{{"order": {i}, "total": {i % 8}.50, "customer": {{"name": "Zoë {i % 50}", "VIP": {str(i % 3 == 0).lower()}}}, "lines": [{i % 7}, {i % 5}.0]}}'


def table():
    """Writes the table after 1,000 events, of which every tenth is in progress."""
    client = boto3.client("dynamodb")
    client.create_table(
        TableName="idempotency", BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}], AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )
    store = DynamoDBPersistenceLayer(table_name="idempotency", boto3_client=client)
    started = threading.Semaphore(0)

    def handler(event, context):
        if event["order"] % 10 == 0:
            started.release()
            time.sleep(3600)
        return {"order": event["order"], "status": "shipped"}

    handler.__module__, handler.__qualname__ = "app", "handler"

    def deliver(i):
        # One config each, because it keeps the context; every second event in progress has none.
        config = IdempotencyConfig(expires_after_seconds=86_400, payload_validation_jmespath="total")
        idempotent(handler, persistence_store=store, config=config)(json.loads(event(i)), None if i % 20 == 0 else Context())

    for i in range(1000):
        if i % 10 == 0:
            threading.Thread(target=deliver, args=[i], daemon=True).start()
            started.acquire()
        else:
            deliver(i)
    rows = {}
    for page in client.get_paginator("scan").paginate(TableName="idempotency"):
        rows |= {item["id"]["S"]: item for item in page["Items"]}
    ids = DynamoDBPersistenceLayer(table_name="idempotency", boto3_client=client)
    ids.configure(IdempotencyConfig(), "app.handler")
    with open("table-python.gz", "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as out:
        for i in range(1000):
            item = rows.pop(ids._get_hashed_idempotency_key(json.loads(event(i))))
            out.write((event(i) + "\t" + json.dumps(item) + "\n").encode())
    assert not rows


keys()
table()
os._exit(0)  # with 100 handlers at work
