package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
)

// DefaultContentionThreshold is the default of AlarmsProps.ContentionThreshold:
// 1000 refused claims in five minutes, which is more than three per second, and
// more than a few duplicates cause.
const DefaultContentionThreshold = 1000

// AlarmsProps changes the defaults of LockTable.Alarms.
type AlarmsProps struct {
	// Topic is notified by every alarm. Nil means no topic, because only you know
	// who should be told.
	Topic awssns.ITopic

	// Actions are taken by every alarm, in addition to Topic. Nil means none,
	// because Topic suffices for most.
	Actions []awscloudwatch.IAlarmAction

	// ContentionThreshold is the number of refused claims per five minutes that
	// raises the alarm Contention after three such periods in a row. Duplicates
	// count too, so the usual number depends on the source. Nil means
	// [DefaultContentionThreshold].
	ContentionThreshold *float64

	// LeasesLost adds the alarm for lost leases, which covers all lock tables of
	// the account and Region. Nil means true, because a lost lease needs attention.
	// If there are several lock tables, set it to false for all but one.
	LeasesLost *bool
}

// LockAlarms are the alarms of a lock table. Missing data does not breach any
// of them.
type LockAlarms struct {
	// Throttles sounds when DynamoDB has throttled writes for 15 minutes.
	Throttles awscloudwatch.Alarm
	// SystemErrors sounds when DynamoDB has returned internal errors for 15
	// minutes.
	SystemErrors awscloudwatch.Alarm
	// Contention sounds when many claims have been refused for 15 minutes.
	Contention awscloudwatch.Alarm
	// LeasesLost sounds when a handler has lost its lease while it worked. It
	// counts the connected functions of all lock tables in the account and Region.
	// Nil if AlarmsProps.LeasesLost is false.
	LeasesLost awscloudwatch.Alarm
}

func (t *lockTable) Alarms(props *AlarmsProps) *LockAlarms {
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
	// three periods with errors. A lost lease needs attention at once.
	const patient, atOnce = 3, 1
	a := &LockAlarms{
		Throttles: t.alarm("Throttles", t.throttledRequests(), jsii.Number(1), patient,
			"DynamoDB throttles writes to the lock table. Handlers that get no lock in time fail. Raise MaxWriteRequestUnits, or use more lock names."),
		SystemErrors: t.alarm("SystemErrors", t.systemErrors(), jsii.Number(1), patient,
			"DynamoDB returns internal errors for the lock table. Handlers fail, and event sources deliver their events again."),
		Contention: t.alarm("Contention", t.refusedClaims(), contention, patient,
			"The lock table refuses many claims. Events spend their attempts on held locks, or there are many duplicates."),
	}
	all := []awscloudwatch.Alarm{a.Throttles, a.SystemErrors, a.Contention}
	if props.LeasesLost == nil || *props.LeasesLost {
		a.LeasesLost = t.alarm("LeasesLost", lostLeases(), jsii.Number(1), atOnce,
			"A handler lost its lease while it worked. Search the logs for \"lambdalock: lost\".")
		onValidation(a.LeasesLost, t.checkOneAlarm)
		all = append(all, a.LeasesLost)
	}
	t.alarms = a
	actions := props.Actions
	if props.Topic != nil {
		actions = append([]awscloudwatch.IAlarmAction{awscloudwatchactions.NewSnsAction(props.Topic)}, actions...)
	}
	if len(actions) > 0 {
		for _, alarm := range all {
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

// checkOneAlarm warns if an earlier lock table has the same alarm for lost
// leases.
func (t *lockTable) checkOneAlarm() {
	for _, other := range t.survey.tables {
		if other == t {
			return
		}
		if other.alarms != nil && other.alarms.LeasesLost != nil && other.accountRegion == t.accountRegion {
			awscdk.Annotations_Of(t.alarms.LeasesLost).AddWarningV2(jsii.String(WarnLeasesLostTwice), jsii.String(fmt.Sprintf(
				"lambdalock: lock tables %s and %s both have an alarm for lost leases, which covers the whole account and Region, so both sound at the same time: "+
					"set AlarmsProps.LeasesLost to false for one of them", other.path, t.path)))
			return
		}
	}
}
