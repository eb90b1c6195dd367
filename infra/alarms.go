package infra

import (
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// DefaultContentionThreshold is the default of AlarmsProps.ContentionThreshold:
// as many claims are refused as are granted.
const DefaultContentionThreshold = 50

// AlarmsProps changes the defaults of LockTable.AddAlarms. If it names neither
// a topic nor an action, no one is told of the alarms, which becomes a warning,
// [WarnNoAction].
type AlarmsProps struct {
	// Topic is notified when an alarm begins and when it ends, so that a tool which
	// opened an incident also closes it. Nil means no topic, because only you know
	// who should be told.
	Topic awssns.ITopic

	// Actions are taken when an alarm begins, and OKActions when it ends, in
	// addition to Topic. Nil means none, because Topic suffices for most.
	Actions, OKActions []awscloudwatch.IAlarmAction

	// ContentionThreshold is the percentage of claims that, if refused for three
	// periods of five minutes in a row, raises the alarm Contention. A period with
	// fewer than 10 refused claims does not count. Without LockTableProps.EMF,
	// duplicates count too, and so does every look of a handler that waits: with
	// OnHeld(Wait) set it to 90 or more. Nil means [DefaultContentionThreshold].
	ContentionThreshold *float64

	// HeldFor adds the alarm OldestHeld: one holder has had its lock for so long.
	// It watches a metric that only a function of yours writes, with
	// emf.OldestHeld, on a schedule of ten minutes or less. Nil means no such
	// alarm, because a lock of a Lambda function ends with its invocation, after 15
	// minutes at most, unless work elsewhere holds it.
	HeldFor awscdk.Duration
}

// alarm describes an alarm. Missing data does not breach any.
type alarm struct {
	id        string
	metric    awscloudwatch.IMetric // with the length of a period
	threshold float64               // that a period reaches
	periods   float64               // in a row
	meaning   string
	command   string // leads to the holder
}

func (t *lockTable) AddAlarms(props *AlarmsProps) {
	if props == nil {
		props = &AlarmsProps{}
	}
	if t.alarms != nil {
		panic(fmt.Sprintf("lambdalock: lock table %s already has alarms: call AddAlarms once, with all topics and actions in AlarmsProps", t.path))
	}
	t.alarms = props.withTopic()
	alarms := t.tableAlarms()
	if !t.emf {
		alarms = append(alarms, t.contention(t.refusedShare(), ""))
		for _, c := range counts {
			alarms = append(alarms, t.countAlarm(c, t.counted(c), ""))
		}
	}
	if props.HeldFor != nil {
		alarms = append(alarms, t.oldestHeld(props.HeldFor))
	}
	for _, a := range alarms {
		t.tableStates = append(t.tableStates, t.addAlarm(t, a))
	}
	for _, c := range t.connections {
		t.addServiceAlarms(c)
	}
	t.showStates()
}

// withTopic returns p with the topic as the first of the actions.
func (p *AlarmsProps) withTopic() *AlarmsProps {
	all := *p
	if p.Topic != nil {
		notify := []awscloudwatch.IAlarmAction{awscloudwatchactions.NewSnsAction(p.Topic)}
		all.Actions, all.OKActions = slices.Concat(notify, p.Actions), slices.Concat(notify, p.OKActions)
	}
	return &all
}

// tableAlarms returns the alarms about what DynamoDB does. The library retries
// throttled and failed requests, so they wait for three periods with errors.
func (t *lockTable) tableAlarms() []alarm {
	list := t.command("list --held", "") + " shows what is held, and by whom."
	return []alarm{
		{
			"Throttles", t.throttledRequests(), 1, 3,
			"DynamoDB throttles writes to the lock table. Handlers that get no lock in time fail. Raise MaxWriteRequestUnits, or use more lock names.", list,
		},
		{
			"SystemErrors", t.systemErrors(), 1, 3,
			"DynamoDB returns internal errors for the lock table. Handlers fail, and event sources deliver their events again.", list,
		},
	}
}

// oldestHeld returns the alarm about a lock that one holder has had for long.
// Its period has several of the values that are written every ten minutes.
func (t *lockTable) oldestHeld(atLeast awscdk.Duration) alarm {
	seconds := *atLeast.ToSeconds(nil)
	long := time.Duration(seconds) * time.Second
	metric := awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(emfNamespace), MetricName: jsii.String("OldestHeld"), Statistic: jsii.String("Maximum"),
		DimensionsMap: &map[string]*string{emfDimension: jsii.String("DynamoDB table " + *t.table.TableName())},
		Period:        awscdk.Duration_Minutes(jsii.Number(15)),
	})
	return alarm{
		"OldestHeld", metric, seconds, 1,
		fmt.Sprintf("One holder has had its lock for %v or longer: its work may hang.", long),
		t.command(fmt.Sprintf("list --held-for %v", long), "") + " shows which, and who.",
	}
}

// contention returns the alarm about refused claims, of one namespace if it is
// not empty. Some refusals are normal, so it waits for three periods.
func (t *lockTable) contention(share awscloudwatch.IMetric, namespace string) alarm {
	threshold := float64(DefaultContentionThreshold)
	if t.alarms.ContentionThreshold != nil {
		threshold = *t.alarms.ContentionThreshold
	}
	meaning := "A large share of the claims is refused: events spend their attempts on held locks."
	if namespace == "" {
		meaning += " Duplicates count too."
	}
	return alarm{
		"Contention", share, threshold, 3, meaning,
		t.command("list --held", namespace) + " shows what is held, and by whom.",
	}
}

// addServiceAlarms adds the alarms about one function that writes metrics, in
// its own stack. Functions that share a namespace share the alarms.
func (t *lockTable) addServiceAlarms(c *connection) {
	if !t.emf || t.alarms == nil || t.alarmed[*c.namespace] {
		return
	}
	t.alarmed[*c.namespace] = true
	t.addAlarm(c.child, t.contention(contendedShare(*c.namespace), *c.namespace))
	for _, n := range counts {
		t.addAlarm(c.child, t.countAlarm(n, serviceSum(n.name, *c.namespace, n.period()), *c.namespace))
	}
}

// countAlarm returns the alarm about a count.
func (t *lockTable) countAlarm(c count, metric awscloudwatch.IMetric, namespace string) alarm {
	return alarm{
		c.name, metric, c.threshold(), 1, c.meaning,
		t.command("show --digest KEY", namespace) + fmt.Sprintf(" shows the holder and its log stream. KEY is in the log lines %q.", c.message()),
	}
}

// command returns a command of lambdalock.
func (t *lockTable) command(subcommand, namespace string) string {
	text := "lambdalock " + subcommand + " --store dynamodb://" + *t.table.TableName()
	if namespace != "" {
		text += " --namespace '" + namespace + "'"
	}
	return text
}

func (t *lockTable) addAlarm(scope constructs.Construct, a alarm) awscloudwatch.Alarm {
	made := awscloudwatch.NewAlarm(scope, jsii.String(a.id), &awscloudwatch.AlarmProps{
		Metric:             a.metric,
		Threshold:          jsii.Number(a.threshold),
		EvaluationPeriods:  jsii.Number(a.periods),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
		AlarmDescription:   jsii.String(a.meaning + " " + a.command),
	})
	if len(t.alarms.OKActions) > 0 {
		made.AddOkAction(t.alarms.OKActions...)
	}
	if len(t.alarms.Actions) > 0 {
		made.AddAlarmAction(t.alarms.Actions...)
	} else {
		onValidation(made, func() { t.checkAction(made) })
	}
	return made
}

// checkAction warns of an alarm that still takes no action.
func (t *lockTable) checkAction(a awscloudwatch.Alarm) {
	r, ok := a.Node().DefaultChild().(awscloudwatch.CfnAlarm)
	if !ok || resolve(a.Stack(), r.AlarmActions()) != nil {
		return
	}
	// One warning for all alarms: the CDK drops repetitions.
	addWarning(awscdk.Annotations_Of(t.table), WarnNoAction, fmt.Sprintf(
		"lambdalock: alarms of lock table %s take no action, so nobody hears them: "+
			"set Topic or Actions in AlarmsProps, or acknowledge this warning if something else watches them", t.path))
}
