package keyfuncs

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// CloudWatchLogs handles each batch of a subscription filter once. Event is a digest
// of owner, filters and the ids of all log events in their order, because a batch has
// no id of its own; Name is log group, log stream and that digest: batches never wait
// for each other. A log event that comes again in another batch is handled again. No
// Order: Lambda is invoked asynchronously, so that batches overtake each other.
//
// A control message, by which CloudWatch Logs checks that the function can be
// reached, gives [ErrIgnore].
//
// Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html,
// https://docs.aws.amazon.com/lambda/latest/dg/services-cloudwatchlogs.html.
func CloudWatchLogs(_ context.Context, e events.CloudwatchLogsEvent) (lock.Key, error) {
	if e.AWSLogs.Data == "" {
		return lock.Key{}, missing("awslogs.data")
	}
	d, err := logsData(e.AWSLogs.Data)
	if err != nil {
		return lock.Key{}, err
	}
	if d.MessageType == "CONTROL_MESSAGE" {
		return lock.Key{}, fmt.Errorf("%w: a control message of CloudWatch Logs", ErrIgnore)
	}
	k, err := logsKey(d)
	return k, within("awslogs.data", err)
}

func logsKey(d events.CloudwatchLogsData) (lock.Key, error) {
	switch "" {
	case d.Owner:
		return lock.Key{}, missing("owner")
	case d.LogGroup:
		return lock.Key{}, missing("logGroup")
	case d.LogStream:
		return lock.Key{}, missing("logStream")
	}
	if len(d.LogEvents) == 0 {
		return lock.Key{}, &lock.KeyError{Field: "logEvents", Reason: "is empty or missing: this is an event of another source"}
	}
	// The number of filters says where they end and the ids begin.
	parts := append([]string{d.Owner, strconv.Itoa(len(d.SubscriptionFilters))}, d.SubscriptionFilters...)
	for i, l := range d.LogEvents {
		if l.ID == "" {
			return lock.Key{}, missing(fmt.Sprintf("logEvents[%d].id", i))
		}
		parts = append(parts, l.ID)
	}
	return once("cloudwatchlogs", digest(named("", parts...)), d.LogGroup, d.LogStream), nil
}

// maxLogs is what a batch may unfold to. An event of Lambda's largest size could
// become gigabytes, and that kills the function. CloudWatch Logs takes in log events
// by 1 MiB at most, so no batch should come near this limit.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
const maxLogs = 64 << 20

// logsData is what e.AWSLogs.Parse returns, which has no limit.
func logsData(data string) (d events.CloudwatchLogsData, err error) {
	invalid := func(reason string, err error) (events.CloudwatchLogsData, error) {
		return d, &lock.KeyError{Field: "awslogs.data", Reason: reason, Err: err}
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
		return invalid(fmt.Sprintf("unfolds to more than %d MiB: CloudWatch Logs sends no such batch", maxLogs>>20), nil)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return invalid("is not the JSON of CloudWatch Logs", err)
	}
	return d, nil
}

// AlarmEvent is what CloudWatch sends to a function that is the action of an alarm.
// Its times are like 2026-11-21T08:15:30.123+0000, which [time.Time] does not read.
//
// Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html.
type AlarmEvent struct {
	Source    string    `json:"source"`
	AlarmARN  string    `json:"alarmArn"`
	AccountID string    `json:"accountId"`
	Time      string    `json:"time"`
	Region    string    `json:"region"`
	AlarmData AlarmData `json:"alarmData"`
}

// AlarmData says what changed.
type AlarmData struct {
	AlarmName     string          `json:"alarmName"`
	State         AlarmState      `json:"state"`
	PreviousState AlarmState      `json:"previousState"` // empty in changes of a contributor
	Configuration json.RawMessage `json:"configuration,omitempty"`
	// AlarmContributor is the time series that changed. Nil if the alarm itself did.
	AlarmContributor *AlarmContributor `json:"alarmContributor,omitempty"`
}

// AlarmState is a state of an alarm and why it is so.
type AlarmState struct {
	Value      string `json:"value"` // OK, ALARM or INSUFFICIENT_DATA
	Reason     string `json:"reason"`
	ReasonData string `json:"reasonData"` // JSON text; may be empty
	Timestamp  string `json:"timestamp"`
}

// AlarmContributor is one time series of an alarm on several.
type AlarmContributor struct {
	ID         string            `json:"id"`
	Attributes map[string]string `json:"attributes"`
}

// CloudWatchAlarm works on one change of an alarm at a time, each once, in a
// function that is the action of the alarm. Name is the alarm's ARN, Event the new
// state, its time and the contributor if there is one: an alarm on several time
// series acts for each of them, and they may change at the same time as the alarm
// itself. A name remembers at least its last eight events. No Order: Lambda is
// invoked asynchronously, and a change that comes late is still a change.
//
// For alarms that come through a topic see [CloudWatchAlarmViaSNS]. Those that come
// through EventBridge are its events like others: [EventBridge].
//
// Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html,
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Acting_Alarm_Changes.html,
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html.
func CloudWatchAlarm(_ context.Context, e AlarmEvent) (lock.Key, error) {
	d := e.AlarmData
	switch "" {
	case e.AlarmARN:
		return lock.Key{}, missing("alarmArn")
	case d.State.Value:
		return lock.Key{}, missing("alarmData.state.value")
	case d.State.Timestamp:
		return lock.Key{}, missing("alarmData.state.timestamp")
	}
	event := []string{d.State.Timestamp}
	if c := d.AlarmContributor; c != nil {
		if c.ID == "" {
			return lock.Key{}, missing("alarmData.alarmContributor.id")
		}
		event = append(event, c.ID)
	}
	return alarm(e.AlarmARN, d.State.Value, event...), nil
}

// CloudWatchAlarmViaSNS is [CloudWatchAlarm] for alarms that come through a topic.
// Name is the same, so that changes of one alarm wait for each other on both ways.
// Event is the new state, its time and a digest of the whole notification, which
// tells the contributors apart; it is not the Event of [CloudWatchAlarm], so that a
// function which gets a change on both ways handles both.
//
// Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html.
func CloudWatchAlarmViaSNS(ctx context.Context, e events.SNSEvent) (lock.Key, error) {
	return oneSNSRecord(ctx, e, CloudWatchAlarmViaSNSRecord)
}

// CloudWatchAlarmViaSNSRecord is [CloudWatchAlarmViaSNS] for one record.
func CloudWatchAlarmViaSNSRecord(ctx context.Context, r events.SNSEventRecord) (lock.Key, error) {
	return SNSBody(func(_ context.Context, p events.CloudWatchAlarmSNSPayload) (lock.Key, error) {
		switch "" {
		case p.AlarmARN:
			return lock.Key{}, missing("AlarmArn")
		case p.NewStateValue:
			return lock.Key{}, missing("NewStateValue")
		case p.StateChangeTime:
			return lock.Key{}, missing("StateChangeTime")
		}
		return alarm(p.AlarmARN, p.NewStateValue, p.StateChangeTime, digest(r.SNS.Message)), nil
	})(ctx, r)
}

func alarm(arn, state string, event ...string) lock.Key {
	return lock.Key{Name: named("alarm", arn), Event: named(url.PathEscape(state), event...)}
}
