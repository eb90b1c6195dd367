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
	infra.NewLockTable(stack, s("Locks"), nil).AddAlarms(nil)
	alarms := map[string]object{} // by the metric
	for _, p := range resources(t, stack, "AWS::CloudWatch::Alarm") {
		if p["AlarmDescription"] == nil {
			t.Errorf("an alarm without a description: %s", encoded(p))
		}
		delete(p, "AlarmDescription")
		for _, metric := range []string{"ThrottledRequests", "SystemErrors", "ConditionalCheckFailedRequests", "LeaseLost"} {
			if strings.Contains(encoded(p), metric+`"`) {
				alarms[metric] = p
			}
		}
	}
	const table = `{"Ref": "LocksTable84FB9352"}`
	query := func(id, metric, operation, stat string) string {
		if operation != "" {
			operation = `{"Name": "Operation", "Value": "` + operation + `"}, `
		}
		return `{"Id": "` + id + `", "ReturnData": false, "MetricStat": {"Period": 300, "Stat": "` + stat + `", "Metric": {
			"Namespace": "AWS/DynamoDB", "MetricName": "` + metric + `", "Dimensions": [` + operation + `{"Name": "TableName", "Value": ` + table + `}]}}}`
	}
	for metric, id := range map[string]string{"ThrottledRequests": "throttled", "SystemErrors": "failed"} {
		equal(t, metric, alarms[metric], `{"Metrics": [
			{"Id": "expr_1", "ReturnData": true, "Label": "`+metric+`", "Expression": "FILL(`+id+`Updates, 0) + FILL(`+id+`Transactions, 0)"},
			`+query(id+"Transactions", metric, "TransactWriteItems", "Sum")+`, `+query(id+"Updates", metric, "UpdateItem", "Sum")+`],
			"ComparisonOperator": "GreaterThanOrEqualToThreshold", "EvaluationPeriods": 3, "Threshold": 1, "TreatMissingData": "notBreaching"}`)
	}
	equal(t, "contention", alarms["ConditionalCheckFailedRequests"], `{"Metrics": [
		{"Id": "expr_1", "ReturnData": true, "Label": "refused claims (%)", "Expression": "IF(FILL(refused, 0) < 10, 0, 100 * refused / (refused + (FILL(updates, 0) + FILL(transactions, 0)) / 2))"},
		`+query("refused", "ConditionalCheckFailedRequests", "", "Sum")+`,
		`+query("transactions", "SuccessfulRequestLatency", "TransactWriteItems", "SampleCount")+`,
		`+query("updates", "SuccessfulRequestLatency", "UpdateItem", "SampleCount")+`],
		"ComparisonOperator": "GreaterThanOrEqualToThreshold", "EvaluationPeriods": 3, "Threshold": 50, "TreatMissingData": "notBreaching"}`)
	equal(t, "leases lost", alarms["LeaseLost"], `{
		"Namespace": "lambdalock/LeaseLost", "MetricName": `+table+`,
		"ComparisonOperator": "GreaterThanOrEqualToThreshold", "Statistic": "Sum", "Period": 300, "EvaluationPeriods": 1, "Threshold": 1, "TreatMissingData": "notBreaching"}`)
}

func TestAlarmsNotify(t *testing.T) {
	stack := newStack()
	alarms := infra.NewLockTable(stack, s("Locks"), nil).AddAlarms(&infra.AlarmsProps{
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
	assertions.Template_FromStack(stack, nil).HasResourceProperties(s("AWS::CloudWatch::Alarm"), object{"Threshold": 7})
}

func TestAlarmsTwice(t *testing.T) {
	locks := infra.NewLockTable(newStack(), s("Locks"), nil)
	locks.AddAlarms(nil)
	if m := panicOf(t, func() { locks.AddAlarms(nil) }); m != "lambdalock: lock table Test/Locks already has alarms: call Alarms once, with all topics and actions in AlarmsProps" {
		t.Error(m)
	}
}
