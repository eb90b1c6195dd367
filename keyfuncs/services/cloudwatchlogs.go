package services

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// CloudWatchLogs handles each batch of a subscription filter once. Event is a
// digest of owner, filters and the ids of all log events in their order,
// because a batch has no id; Name is log group, log stream and that digest. A
// log event that comes again in another batch is handled again. No Order. A
// control message gives [keyfuncs.ErrIgnore].
func CloudWatchLogs(_ context.Context, e events.CloudwatchLogsEvent) (lock.Key, error) {
	// https://docs.aws.amazon.com/lambda/latest/dg/services-cloudwatchlogs.html
	if e.AWSLogs.Data == "" {
		return lock.Key{}, keyparts.Missing("awslogs.data")
	}
	d, err := logsData(e.AWSLogs.Data)
	if err != nil {
		return lock.Key{}, err
	}
	if d.MessageType == "CONTROL_MESSAGE" {
		return lock.Key{}, fmt.Errorf("%w: a control message of CloudWatch Logs", keyfuncs.ErrIgnore)
	}
	return logsKey(d)
}

func logsKey(d events.CloudwatchLogsData) (lock.Key, error) {
	if err := keyparts.Required("awslogs.data.owner", d.Owner, "awslogs.data.logGroup", d.LogGroup, "awslogs.data.logStream", d.LogStream); err != nil {
		return lock.Key{}, err
	}
	if len(d.LogEvents) == 0 {
		return lock.Key{}, &lock.NoKeyError{Field: "awslogs.data.logEvents", Reason: "is empty or missing: " + keyparts.AnotherSource}
	}
	// The number of filters says where they end and the ids begin.
	parts := append([]string{d.Owner, strconv.Itoa(len(d.SubscriptionFilters))}, d.SubscriptionFilters...)
	for i, l := range d.LogEvents {
		if l.ID == "" {
			return lock.Key{}, keyparts.Missing(fmt.Sprintf("awslogs.data.logEvents[%d].id", i))
		}
		parts = append(parts, l.ID)
	}
	return keyparts.Once("cloudwatchlogs", keyparts.Digest(keyparts.Name("", parts...)), d.LogGroup, d.LogStream), nil
}

// maxLogs limits the size of an unpacked batch. The largest event that Lambda
// accepts could unpack to gigabytes, which would kill the function. CloudWatch
// Logs accepts at most 1 MiB of log events at a time, so no batch should come
// near this limit.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
const maxLogs = 64 << 20

// logsData does what e.AWSLogs.Parse does, which has no limit.
func logsData(data string) (d events.CloudwatchLogsData, err error) {
	invalid := func(reason string, err error) (events.CloudwatchLogsData, error) {
		return d, &lock.NoKeyError{Field: "awslogs.data", Reason: reason, Err: err}
	}
	compressed, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return invalid("is not base64", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return invalid("is not in gzip format", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxLogs+1))
	if err != nil {
		return invalid("is not in gzip format", err)
	}
	if len(text) > maxLogs {
		return invalid(fmt.Sprintf("unpacks to more than %d MiB, and CloudWatch Logs sends no such batch", maxLogs>>20), nil)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return invalid("is not the JSON of CloudWatch Logs", err)
	}
	return d, nil
}
