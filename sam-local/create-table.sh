#!/bin/sh
# Creates the lock table LOCK_TABLE_NAME with the AWS CLI, as lambdalock create-table
# does. compose.yaml runs it while the server may still be starting.
set -eu

tries=0
until aws dynamodb list-tables >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 30 ] || { aws dynamodb list-tables; exit 1; } # shows the error
	sleep 1
done

if aws dynamodb describe-table --table-name "$LOCK_TABLE_NAME" >/dev/null 2>&1; then
	echo "table $LOCK_TABLE_NAME exists"
	exit
fi
aws dynamodb create-table --table-name "$LOCK_TABLE_NAME" --billing-mode PAY_PER_REQUEST \
	--attribute-definitions AttributeName=lock,AttributeType=S --key-schema AttributeName=lock,KeyType=HASH >/dev/null
aws dynamodb wait table-exists --table-name "$LOCK_TABLE_NAME"
aws dynamodb update-time-to-live --table-name "$LOCK_TABLE_NAME" \
	--time-to-live-specification Enabled=true,AttributeName=deleteAfter >/dev/null
echo "table $LOCK_TABLE_NAME is ready"
