package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

func TestAlarms(t *testing.T) {
	stack := newStack()
	infra.NewLockTable(stack, s("Locks"), nil).Alarms(nil)
	alarms := map[string]object{} // by the metric
	for _, p := range resources(t, stack, "AWS::CloudWatch::Alarm") {
		if p["AlarmDescription"] == nil {
			t.Errorf("an alarm without a description: %s", encoded(p))
		}
		delete(p, "AlarmDescription")
		for _, metric := range []string{"ThrottledRequests", "SystemErrors", "ConditionalCheckFailedRequests", "LeaseLost"} {
			if strings.Contains(encoded(p), `"MetricName":"`+metric+`"`) {
				alarms[metric] = p
			}
		}
	}
	for _, metric := range []string{"ThrottledRequests", "SystemErrors"} {
		equal(t, metric, alarms[metric], `{
			"Namespace": "AWS/DynamoDB", "MetricName": "`+metric+`",
			"Dimensions": [{"Name": "Operation", "Value": "UpdateItem"}, {"Name": "TableName", "Value": {"Ref": "LocksTable84FB9352"}}],
			"ComparisonOperator": "GreaterThanOrEqualToThreshold", "Statistic": "Sum", "Period": 300, "EvaluationPeriods": 3, "Threshold": 1, "TreatMissingData": "notBreaching"}`)
	}
	equal(t, "contention", alarms["ConditionalCheckFailedRequests"], `{
		"Namespace": "AWS/DynamoDB", "MetricName": "ConditionalCheckFailedRequests", "Dimensions": [{"Name": "TableName", "Value": {"Ref": "LocksTable84FB9352"}}],
		"ComparisonOperator": "GreaterThanOrEqualToThreshold", "Statistic": "Sum", "Period": 300, "EvaluationPeriods": 3, "Threshold": 1000, "TreatMissingData": "notBreaching"}`)
	equal(t, "leases lost", alarms["LeaseLost"], `{
		"Namespace": "lambdalock", "MetricName": "LeaseLost",
		"ComparisonOperator": "GreaterThanOrEqualToThreshold", "Statistic": "Sum", "Period": 300, "EvaluationPeriods": 1, "Threshold": 1, "TreatMissingData": "notBreaching"}`)
}

func TestAlarmsNotify(t *testing.T) {
	stack := newStack()
	alarms := infra.NewLockTable(stack, s("Locks"), nil).Alarms(&infra.AlarmsProps{
		Topic:               awssns.NewTopic(stack, s("Alerts"), nil),
		Actions:             []awscloudwatch.IAlarmAction{awscloudwatchactions.NewSnsAction(awssns.NewTopic(stack, s("More"), nil))},
		ContentionThreshold: jsii.Number(7),
	})
	for _, p := range resources(t, stack, "AWS::CloudWatch::Alarm") {
		if a := encoded(p["AlarmActions"]); !strings.Contains(a, `{"Ref":"Alerts`) || !strings.Contains(a, `{"Ref":"More`) {
			t.Errorf("%s: actions are %s", p["AlarmDescription"], a)
		}
	}
	for name, a := range map[string]awscloudwatch.Alarm{
		"Throttles": alarms.Throttles, "SystemErrors": alarms.SystemErrors, "Contention": alarms.Contention, "LeasesLost": alarms.LeasesLost,
	} {
		if *a.Node().Path() != "Test/Locks/"+name {
			t.Errorf("alarm %s is at %s", name, *a.Node().Path())
		}
	}
	assertions.Template_FromStack(stack, nil).HasResourceProperties(s("AWS::CloudWatch::Alarm"), object{
		"MetricName": "ConditionalCheckFailedRequests", "Threshold": 7,
	})
}

func TestAlarmsTwice(t *testing.T) {
	locks := infra.NewLockTable(newStack(), s("Locks"), nil)
	locks.Alarms(nil)
	if m := panicOf(t, func() { locks.Alarms(nil) }); m != "lambdalock: lock table Test/Locks already has alarms: call Alarms once, with all topics and actions in AlarmsProps" {
		t.Error(m)
	}
}

// TestOneAlarmForLeases: the metric covers the account and Region, so a second
// alarm is worth a warning.
func TestOneAlarmForLeases(t *testing.T) {
	const a = "111111111111"
	without := &infra.AlarmsProps{LeasesLost: jsii.Bool(false)}
	for name, c := range map[string]struct {
		regions       [2]string
		first, second *infra.AlarmsProps
		warned        bool
	}{
		"two":            {[2]string{"eu-west-1", "eu-west-1"}, nil, nil, true},
		"unknown Region": {[2]string{"", ""}, nil, nil, true},
		"two Regions":    {[2]string{"eu-west-1", "us-east-1"}, nil, nil, false},
		"the first":      {[2]string{"eu-west-1", "eu-west-1"}, nil, without, false},
		"the second":     {[2]string{"eu-west-1", "eu-west-1"}, without, nil, false},
		"two, asked for": {[2]string{"eu-west-1", "eu-west-1"}, nil, &infra.AlarmsProps{LeasesLost: jsii.Bool(true)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			app := awscdk.NewApp(nil)
			first := infra.NewLockTable(newStackIn(app, "A", a, c.regions[0]), s("Locks"), nil).Alarms(c.first)
			stack := newStackIn(app, "B", a, c.regions[1])
			second := infra.NewLockTable(stack, s("Locks"), nil).Alarms(c.second)
			want := 4
			if c.second == without {
				want = 3
			}
			if all := len(resources(t, stack, "AWS::CloudWatch::Alarm")); all != want || (second.LeasesLost == nil) != (c.second == without) {
				t.Errorf("%d alarms, %v", all, second.LeasesLost)
			}
			if first.LeasesLost != nil {
				if got := annotations(first.LeasesLost.Node(), "warning"); len(got) != 0 {
					t.Errorf("the first alarm has warnings: %q", got)
				}
			}
			if second.LeasesLost == nil {
				return
			}
			got := annotations(second.LeasesLost.Node(), "warning")
			if c.warned != (len(got) == 1) || c.warned && !strings.HasPrefix(got[0], "lambdalock: lock tables A/Locks and B/Locks both have an alarm for lost leases") {
				t.Errorf("%q", got)
			}
		})
	}
}
