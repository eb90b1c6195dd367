package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

var snsAlarm = keyfuncs.Single[events.SNSEvent](services.SNSAlarmRecord)

func TestCloudWatchAlarm(t *testing.T) {
	t.Parallel()
	gives(t, "alarm.json", services.CloudWatchAlarm, lock.Key{
		Name: "alarm/arn:aws:cloudwatch:eu-central-1:123456789012:alarm:orders-too-slow", Event: "ALARM/2026-11-21T08:15:30.123+0000",
	})
	gives(t, "alarm-contributor.json", services.CloudWatchAlarm, lock.Key{
		Name: "alarm/arn:aws:cloudwatch:eu-central-1:123456789012:alarm:tables-idle", Event: "ALARM/2026-11-21T08:15:30.123+0000/3fa85f64b1c2d9e0",
	})
	if d := load[awsevents.AlarmEvent](t, "alarm-contributor.json").AlarmData; d.AlarmContributor.Attributes["TableName"] != "orders" || len(d.Configuration) == 0 {
		t.Errorf("decoded as %+v", d)
	}
	apart(t, "alarm-contributor.json", services.CloudWatchAlarm, map[string]func(*awsevents.AlarmEvent){
		"another alarm":       func(e *awsevents.AlarmEvent) { e.AlarmARN += "er" },
		"another state":       func(e *awsevents.AlarmEvent) { e.AlarmData.State.Value = "OK" },
		"another time":        func(e *awsevents.AlarmEvent) { e.AlarmData.State.Timestamp = "2026-11-21T08:15:30.124+0000" },
		"another contributor": func(e *awsevents.AlarmEvent) { e.AlarmData.AlarmContributor.ID = "3fa85f64b1c2d9e1" },
		"the alarm itself":    func(e *awsevents.AlarmEvent) { e.AlarmData.AlarmContributor = nil },
	})
	refuses(t, "alarm-contributor.json", services.CloudWatchAlarm, map[string]func(*awsevents.AlarmEvent){
		"alarmArn":                      func(e *awsevents.AlarmEvent) { e.AlarmARN = "" },
		"alarmData.state.value":         func(e *awsevents.AlarmEvent) { e.AlarmData.State.Value = "" },
		"alarmData.state.timestamp":     func(e *awsevents.AlarmEvent) { e.AlarmData.State.Timestamp = "" },
		"alarmData.alarmContributor.id": func(e *awsevents.AlarmEvent) { e.AlarmData.AlarmContributor.ID = "" },
	})
}

func TestSNSAlarmRecord(t *testing.T) {
	t.Parallel()
	want := lock.Key{
		Name:  "alarm/arn:aws:cloudwatch:eu-central-1:123456789012:alarm:orders-too-slow",
		Event: "ALARM/2026-11-21T08:15:30.123+0000/GRgFbn-FIJLvHB4gNvYsqp68sHWlkmt1BoxeqcH9bMg",
	}
	gives(t, "sns-alarm.json", snsAlarm, want)
	again, err := changed(t, "sns-alarm.json", snsAlarm, func(e *events.SNSEvent) { e.Records[0].SNS.MessageID = "another" })
	if again != want || err != nil {
		t.Errorf("the same notification, published again: %+v, %v; want %+v", again, err, want)
	}
	apart(t, "sns-alarm.json", snsAlarm, map[string]func(*events.SNSEvent){
		"another notification of the same time": func(e *events.SNSEvent) { e.Records[0].SNS.Message += " " },
	})
}

func TestSNSAlarmErrors(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"AlarmArn", "NewStateValue", "StateChangeTime"} {
		_, err := changed(t, "sns-alarm.json", snsAlarm, func(e *events.SNSEvent) {
			m := decoded[map[string]any](t, e.Records[0].SNS.Message)
			delete(m, field)
			e.Records[0].SNS.Message = marshal(t, m)
		})
		refused(t, "no "+field, err, "Records[0].Sns.Message."+field, "missing")
	}
	_, err := inTopic(services.SNSAlarmRecord)(t.Context(), "ALARM!")
	refused(t, "not JSON", err, "Sns.Message", "JSON")
}
