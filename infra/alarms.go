package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
)

// DefaultContentionThreshold is the default of AlarmsProps.ContentionThreshold:
// as many claims are refused as are granted.
const DefaultContentionThreshold = 50

// AlarmsProps changes the defaults of LockTable.Alarms.
type AlarmsProps struct {
	// Topic is notified by every alarm. Nil means no topic, because only you know
	// who should be told.
	Topic awssns.ITopic

	// Actions are taken by every alarm, in addition to Topic. Nil means none,
	// because Topic suffices for most.
	Actions []awscloudwatch.IAlarmAction

	// ContentionThreshold is the percentage of claims that, if refused for three
	// periods of five minutes in a row, raises the alarm Contention. A period with
	// fewer than 10 refused claims does not count. Duplicates count too, and so
	// does every look of a handler that waits: with OnHeld(Wait) set it to 90 or
	// more. Nil means [DefaultContentionThreshold].
	ContentionThreshold *float64
}

// LockAlarms are the alarms of a lock table. Missing data does not breach any
// of them.
type LockAlarms struct {
	// Throttles sounds when DynamoDB has throttled writes for 15 minutes.
	Throttles awscloudwatch.Alarm
	// SystemErrors sounds when DynamoDB has returned internal errors for 15
	// minutes.
	SystemErrors awscloudwatch.Alarm
	// Contention sounds when a large share of the claims has been refused for 15
	// minutes.
	Contention awscloudwatch.Alarm
	// LeasesLost sounds when a handler has lost its lease while it worked. It
	// counts the log lines of the connected functions whose log group is known.
	LeasesLost awscloudwatch.Alarm
}

func (t *lockTable) AddAlarms(props *AlarmsProps) *LockAlarms {
	if props == nil {
		props = &AlarmsProps{}
	}
	if t.alarms != nil {
		panic(fmt.Sprintf("lambdalock: lock table %s already has alarms: call Alarms once, with all topics and actions in AlarmsProps", t.path))
	}
	contention := props.ContentionThreshold
	if contention == nil {
		contention = jsii.Number(DefaultContentionThreshold)
	}
	// The library retries throttled and failed requests, so an alarm waits for
	// three periods with errors. A lost lease needs attention immediately.
	const patient, atOnce = 3, 1
	a := &LockAlarms{
		Throttles: t.alarm("Throttles", t.throttledRequests(), jsii.Number(1), patient,
			"DynamoDB throttles writes to the lock table. Handlers that get no lock in time fail. Raise MaxWriteRequestUnits, or use more lock names."),
		SystemErrors: t.alarm("SystemErrors", t.systemErrors(), jsii.Number(1), patient,
			"DynamoDB returns internal errors for the lock table. Handlers fail, and event sources deliver their events again."),
		Contention: t.alarm("Contention", t.refusedShare(), contention, patient,
			"The lock table refuses a large share of the claims. Events spend their attempts on held locks, or there are many duplicates."),
		LeasesLost: t.alarm("LeasesLost", t.lostLeases(), jsii.Number(1), atOnce,
			"A handler lost its lease while it worked. Search the logs for \"lambdalock: lost\"."),
	}
	t.alarms = a
	actions := props.Actions
	if props.Topic != nil {
		actions = append([]awscloudwatch.IAlarmAction{awscloudwatchactions.NewSnsAction(props.Topic)}, actions...)
	}
	if len(actions) > 0 {
		for _, alarm := range []awscloudwatch.Alarm{a.Throttles, a.SystemErrors, a.Contention, a.LeasesLost} {
			alarm.AddAlarmAction(actions...)
		}
	}
	return a
}

func (t *lockTable) alarm(id string, metric awscloudwatch.IMetric, threshold *float64, periods float64, description string) awscloudwatch.Alarm {
	return awscloudwatch.NewAlarm(t, jsii.String(id), &awscloudwatch.AlarmProps{
		Metric:             metric,
		Threshold:          threshold,
		EvaluationPeriods:  jsii.Number(periods),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
		AlarmDescription:   jsii.String(description),
	})
}
