package services

import (
	"context"
	"net/url"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// CloudWatchAlarm works on one change of an alarm at a time, each once, in a
// function that is the action of the alarm. Name is the alarm's ARN, Event the
// new state, its time and the contributor if there is one: an alarm on several
// time series acts for each of them, and they may change at the same time as
// the alarm itself. No Order: Lambda is invoked asynchronously, and a change
// that comes late is still a change.
//
// For alarms that come through a topic see [SNSAlarmRecord]. For those that
// come through EventBridge use [keyfuncs.EventBridgeEvent].
//
// Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html,
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Acting_Alarm_Changes.html,
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html.
func CloudWatchAlarm(_ context.Context, e awsevents.AlarmEvent) (lock.Key, error) {
	d := e.AlarmData
	if err := keyparts.Required(
		"alarmArn", e.AlarmARN, "alarmData.state.value", d.State.Value, "alarmData.state.timestamp", d.State.Timestamp,
	); err != nil {
		return lock.Key{}, err
	}
	event := []string{d.State.Timestamp}
	if c := d.AlarmContributor; c != nil {
		if c.ID == "" {
			return lock.Key{}, keyparts.Missing("alarmData.alarmContributor.id")
		}
		event = append(event, c.ID)
	}
	return alarm(e.AlarmARN, d.State.Value, event...), nil
}

// SNSAlarmRecord is [CloudWatchAlarm] for one record of a topic that gets
// alarms. Name is the same, so changes of one alarm wait for each other
// whichever way they come. Event is the new state, its time and a digest of the
// whole notification, which tells the contributors apart. It differs from the
// Event of CloudWatchAlarm, so a function that gets one change both ways
// handles it twice.
//
// Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html.
func SNSAlarmRecord(ctx context.Context, r events.SNSEventRecord) (lock.Key, error) {
	return keyfuncs.SNSBody(func(_ context.Context, p events.CloudWatchAlarmSNSPayload) (lock.Key, error) {
		if err := keyparts.Required(
			"AlarmArn", p.AlarmARN, "NewStateValue", p.NewStateValue, "StateChangeTime", p.StateChangeTime,
		); err != nil {
			return lock.Key{}, err
		}
		return alarm(p.AlarmARN, p.NewStateValue, p.StateChangeTime, keyparts.Digest(r.SNS.Message)), nil
	})(ctx, r)
}

func alarm(arn, state string, event ...string) lock.Key {
	return lock.Key{Name: keyparts.Name("alarm", arn), Event: keyparts.Name(url.PathEscape(state), event...)}
}
