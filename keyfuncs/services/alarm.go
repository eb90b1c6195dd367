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
// new state, its time and the contributor if there is one. No Order. For alarms
// through a topic see [SNSAlarmRecord]; through EventBridge, use
// [keyfuncs.EventBridgeEvent].
func CloudWatchAlarm(_ context.Context, e awsevents.AlarmEvent) (lock.Key, error) {
	// An alarm on several time series acts for each of them, and they may change at
	// the same time as the alarm itself.
	// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Acting_Alarm_Changes.html
	// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
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
// alarms. Name is the same. Event is the new state, its time and a digest of
// the notification, so a function that gets one change both ways handles it
// twice.
func SNSAlarmRecord(ctx context.Context, r events.SNSEventRecord) (lock.Key, error) {
	// The digest of the whole notification tells the contributors apart.
	// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
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
