package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
)

// DefaultContentionThreshold is how many refused claims within five minutes are
// worth an alarm, unless AlarmsProps.ContentionThreshold says otherwise.
const DefaultContentionThreshold = 1000

// AlarmsProps says whom the alarms tell, and when.
type AlarmsProps struct {
	// Topic is notified by every alarm. Default: none.
	Topic awssns.ITopic

	// Actions are taken by every alarm, besides Topic. Default: none.
	Actions []awscloudwatch.IAlarmAction

	// ContentionThreshold is how many claims must be refused in five minutes, three
	// times in a row. Duplicates count as well, so what is usual depends on the
	// source. Default: [DefaultContentionThreshold].
	ContentionThreshold *float64

	// LeasesLost makes the alarm for lost leases, which is about all lock tables of
	// the account and Region. Default: true. Set it to false for all of them but one.
	LeasesLost *bool
}

// LockAlarms are the alarms of a lock table. Missing data does not breach any of
// them.
type LockAlarms struct {
	// Throttles: for 15 minutes DynamoDB has refused writes for their rate.
	Throttles awscloudwatch.Alarm
	// SystemErrors: for 15 minutes DynamoDB has failed.
	SystemErrors awscloudwatch.Alarm
	// Contention: for 15 minutes many claims have been refused.
	Contention awscloudwatch.Alarm
	// LeasesLost: work went on without its lock, or was stopped for that. It counts
	// the connected functions of all lock tables in the account and Region. Nil if
	// AlarmsProps.LeasesLost is false.
	LeasesLost awscloudwatch.Alarm
}

func (t *lockTable) Alarms(props *AlarmsProps) *LockAlarms {
	if props == nil {
		props = &AlarmsProps{}
	}
	if t.alarms != nil {
		panic(fmt.Sprintf("lambdalock: lock table %s has its alarms already: call Alarms once, with all topics and actions in AlarmsProps", t.path))
	}
	contention := props.ContentionThreshold
	if contention == nil {
		contention = jsii.Number(DefaultContentionThreshold)
	}
	// The library repeats what was throttled or failed, so one such answer is no
	// reason to wake anybody; a lost lease is.
	const patient, atOnce = 3, 1
	a := &LockAlarms{
		Throttles: t.alarm("Throttles", t.throttles(), jsii.Number(1), patient,
			"Lock table: DynamoDB throttles. Handlers fail that get no lock in time; raise MaxWriteRequestUnits, or spread hot names."),
		SystemErrors: t.alarm("SystemErrors", t.systemErrors(), jsii.Number(1), patient,
			"Lock table: DynamoDB fails. Events are delivered again as their source does."),
		Contention: t.alarm("Contention", t.refused(), contention, patient,
			"Lock table: many claims are refused. Events spend their attempts on locks that are held, or come many times."),
	}
	all := []awscloudwatch.Alarm{a.Throttles, a.SystemErrors, a.Contention}
	if props.LeasesLost == nil || *props.LeasesLost {
		a.LeasesLost = t.alarm("LeasesLost", lost(), jsii.Number(1), atOnce,
			"A handler lost its lease while it worked. Look for \"lambdalock: lost\" in the logs.")
		a.LeasesLost.Node().AddValidation(&oneAlarm{t})
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

// oneAlarm checks that no other lock table has the same alarm for lost leases.
type oneAlarm struct{ table *lockTable }

// Validate is called by the CDK after the aspects.
func (o *oneAlarm) Validate() *[]*string {
	t := o.table
	for _, other := range t.survey.tables {
		if other == t { // The first of them has nothing to hear.
			break
		}
		if other.alarms != nil && other.alarms.LeasesLost != nil && other.place == t.place {
			awscdk.Annotations_Of(t.alarms.LeasesLost).AddWarningV2(jsii.String(WarnLeasesLostTwice), jsii.String(fmt.Sprintf(
				"lambdalock: lock tables %s and %s both have an alarm for the leases that are lost in the account and Region, so that each sounds for both: "+
					"set AlarmsProps.LeasesLost to false for one of them", other.path, t.path)))
			break
		}
	}
	return &[]*string{}
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

// What the metrics of a table mean:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html

func period() awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(5)) }

// ofUpdates is a metric of UpdateItem alone. The metrics of Table that add up
// operations (MetricThrottledRequestsForOperations) cannot share a graph.
func (t *lockTable) ofUpdates(metric, statistic string) awscloudwatch.IMetric {
	return t.table.Metric(jsii.String(metric), &awscloudwatch.MetricOptions{
		DimensionsMap: &map[string]*string{"TableName": t.table.TableName(), "Operation": jsii.String("UpdateItem")},
		Statistic:     jsii.String(statistic),
		Period:        period(),
	})
}

func (t *lockTable) throttles() awscloudwatch.IMetric {
	return t.ofUpdates("ThrottledRequests", "Sum")
}

func (t *lockTable) systemErrors() awscloudwatch.IMetric {
	return t.ofUpdates("SystemErrors", "Sum")
}

func (t *lockTable) refused() awscloudwatch.IMetric {
	return t.table.MetricConditionalCheckFailedRequests(&awscloudwatch.MetricOptions{
		Statistic: jsii.String("Sum"), Period: period(),
	})
}

func (t *lockTable) writes() awscloudwatch.IMetric {
	return t.table.MetricConsumedWriteCapacityUnits(&awscloudwatch.MetricOptions{
		Statistic: jsii.String("Sum"), Period: period(),
	})
}

func (t *lockTable) latency(statistic string) awscloudwatch.IMetric {
	return t.ofUpdates("SuccessfulRequestLatency", statistic)
}

func lost() awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(metricNamespace), MetricName: jsii.String(leaseLost),
		Statistic: jsii.String("Sum"), Period: period(),
	})
}

// DashboardProps changes the defaults of LockTable.Dashboard.
type DashboardProps struct {
	// DashboardName is the physical name. Default: one that CloudFormation makes.
	DashboardName *string
}

func (t *lockTable) Dashboard(props *DashboardProps) awscloudwatch.Dashboard {
	if props == nil {
		props = &DashboardProps{}
	}
	if t.dashboard {
		panic(fmt.Sprintf("lambdalock: lock table %s has its dashboard already: call Dashboard once", t.path))
	}
	t.dashboard = true
	d := awscloudwatch.NewDashboard(t, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{DashboardName: props.DashboardName})
	graph := func(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
		return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
			Title: jsii.String(title), Left: &metrics, Width: jsii.Number(12), Height: jsii.Number(6),
		})
	}
	d.AddWidgets(
		graph("Locks: write units, and claims refused", t.writes(), t.refused()),
		graph("Locks: latency of a request (ms)", t.latency("p50"), t.latency("p99")),
	)
	d.AddWidgets(
		graph("Locks: requests throttled and failed", t.throttles(), t.systemErrors()),
		graph("Leases lost", lost()),
	)
	return d
}
