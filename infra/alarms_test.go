package infra_test

import (
	"strings"
	"testing"

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

func TestDashboard(t *testing.T) {
	stack := newStack()
	infra.NewLockTable(stack, s("Locks"), nil).Dashboard(&infra.DashboardProps{DashboardName: s("locks")})
	p := only(t, stack, "AWS::CloudWatch::Dashboard")
	equal(t, "name", p["DashboardName"], `"locks"`)
	body := encoded(p["DashboardBody"])
	for _, metric := range []string{
		"ConsumedWriteCapacityUnits", "ConditionalCheckFailedRequests", "SuccessfulRequestLatency",
		"ThrottledRequests", "SystemErrors", "LeaseLost", "UpdateItem",
	} {
		if !strings.Contains(body, metric) {
			t.Errorf("the dashboard does not show %s", metric)
		}
	}

	stack = newStack()
	infra.NewLockTable(stack, s("Locks"), nil).Dashboard(nil)
	if name := only(t, stack, "AWS::CloudWatch::Dashboard")["DashboardName"]; name != nil {
		t.Errorf("the dashboard is named %v without being asked", name)
	}
}
