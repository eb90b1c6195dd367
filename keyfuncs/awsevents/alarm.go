package awsevents

import "encoding/json"

// AlarmEvent is what CloudWatch sends to a function that is the action of an
// alarm. Its times look like 2026-11-21T08:15:30.123+0000, which [time.Time]
// cannot read.
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
	PreviousState AlarmState      `json:"previousState"` // empty if a contributor changed
	Configuration json.RawMessage `json:"configuration,omitempty"`
	// AlarmContributor is the time series that changed. It is nil if the alarm
	// itself changed.
	AlarmContributor *AlarmContributor `json:"alarmContributor,omitempty"`
}

// AlarmState is a state of an alarm, and the reason for it.
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
