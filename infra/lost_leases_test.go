package infra_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"

	"github.com/lambdalock/lambdalock/infra"
)

func TestLostLeasesAreCounted(t *testing.T) {
	managed := func() awscdk.Stack {
		return awscdk.NewStack(awscdk.NewApp(&awscdk.AppProps{Context: &object{"@aws-cdk/aws-lambda:useCdkManagedLogGroup": true}}), s("Test"), nil)
	}
	for name, c := range map[string]struct {
		stack   awscdk.Stack
		connect func(infra.LockTable, awscdk.Stack)
		group   string // beginning of its logical id
	}{
		"property LogGroup": {newStack(), func(locks infra.LockTable, stack awscdk.Stack) {
			locks.Connect(newFunction(stack, "Fn", &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(stack, s("Logs"), nil)}), nil)
		}, "Logs"},
		"feature flag": {managed(), func(locks infra.LockTable, stack awscdk.Stack) {
			locks.Connect(newFunction(stack, "Fn", nil), nil)
		}, "FnLogGroup"},
		"given": {newStack(), func(locks infra.LockTable, stack awscdk.Stack) {
			locks.Connect(newFunction(stack, "Fn", nil), &infra.ConnectOptions{LogGroup: awslogs.NewLogGroup(stack, s("Given"), nil)})
		}, "Given"},
	} {
		t.Run(name, func(t *testing.T) {
			c.connect(infra.NewLockTable(c.stack, s("Locks"), nil), c.stack)
			p := only(t, c.stack, "AWS::Logs::MetricFilter")
			equal(t, "pattern", p["FilterPattern"], `"\"lambdalock: lost\""`)
			equal(t, "metric", p["MetricTransformations"], `[{"MetricName": {"Ref": "LocksTable84FB9352"}, "MetricNamespace": "lambdalock/LeaseLost", "MetricValue": "1"}]`)
			if group := encoded(p["LogGroupName"]); !strings.HasPrefix(group, `{"Ref":"`+c.group) {
				t.Errorf("the filter is on %s", group)
			}
			if n := len(resources(t, c.stack, "AWS::Logs::LogGroup")); n != 1 {
				t.Errorf("%d log groups, want 1", n)
			}
		})
	}
}

// TestLeasesOfEachTable: the alarm of one table does not hear of the leases
// that the functions of another table lose. The function is in a stack of its
// own.
func TestLeasesOfEachTable(t *testing.T) {
	app := awscdk.NewApp(nil)
	data, code := newStackIn(app, "Data", "111111111111", "eu-west-1"), newStackIn(app, "Code", "111111111111", "eu-west-1")
	dev, prod := infra.NewLockTable(data, s("Dev"), &infra.LockTableProps{TableName: s("dev-locks")}), infra.NewLockTable(data, s("Prod"), &infra.LockTableProps{TableName: s("prod-locks")})
	dev.AddAlarms(nil)
	prod.AddAlarms(nil)
	dev.Connect(newFunction(code, "Fn", &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(code, s("Logs"), nil)}), nil)
	name := func(id string) string { // of the table, as in the metric of its alarm
		for name := range *assertions.Template_FromStack(data, nil).FindResources(s("AWS::DynamoDB::Table"), &object{"Properties": object{"TableName": id}}) {
			return `{"Ref": "` + name + `"}`
		}
		return ""
	}
	for id, want := range map[string]float64{"dev-locks": 1, "prod-locks": 1} {
		var metric any
		if err := json.Unmarshal([]byte(name(id)), &metric); err != nil {
			t.Fatal(err)
		}
		assertions.Template_FromStack(data, nil).ResourcePropertiesCountIs(s("AWS::CloudWatch::Alarm"),
			object{"Namespace": "lambdalock/LeaseLost", "MetricName": metric}, &want)
	}
	transformations, _ := only(t, code, "AWS::Logs::MetricFilter")["MetricTransformations"].([]any)
	if got := encoded(at(transformations[0], "MetricName")); !strings.Contains(got, "dev-locks") && !strings.Contains(got, "Dev") || strings.Contains(got, "rod") {
		t.Errorf("the function of the development table is counted as %s", got)
	}
}

// TestLogLevel: a level above that of a lost lease hides it.
func TestLogLevel(t *testing.T) {
	const warning = "its application log level is "
	for level, warned := range map[awslambda.ApplicationLogLevel]bool{
		"": false, "WARN": false, "INFO": false, "ERROR": false, "FATAL": true,
	} {
		t.Run("level "+string(level), func(t *testing.T) {
			c := checkCase{fn: &awslambda.FunctionProps{LoggingFormat: awslambda.LoggingFormat_JSON, ApplicationLogLevelV2: level}}
			if warned {
				c.want = []string{warning + string(level)}
			}
			c.run(t, "warning")
		})
	}
}

// TestFormatOfLogsIsNoLogGroup: the format is in the same property as the log
// group.
func TestFormatOfLogsIsNoLogGroup(t *testing.T) {
	stack := newStack()
	fn := newFunction(stack, "Fn", &awslambda.FunctionProps{LoggingFormat: awslambda.LoggingFormat_JSON})
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	if n := len(resources(t, stack, "Custom::LogRetention")) + len(resources(t, stack, "AWS::Logs::MetricFilter")); n != 0 {
		t.Errorf("%d resources for a log group that the CDK does not manage", n)
	}
}

// TestLeasesNotCounted: an alarm that does not see a function is worth a
// warning.
func TestLeasesNotCounted(t *testing.T) {
	alarms := func(_ awscdk.Stack, _ awslambda.Function, locks infra.LockTable) { locks.AddAlarms(nil) }
	t.Run("alarm", func(t *testing.T) {
		checkCase{build: alarms, want: []string{"the CDK does not manage its log group"}}.run(t, "warning")
	})
	t.Run("no alarm", func(t *testing.T) { checkCase{}.run(t, "warning") })
	t.Run("alarm and log group", func(t *testing.T) {
		stack := newStack()
		locks := infra.NewLockTable(stack, s("Locks"), nil)
		fn := newFunction(stack, "Fn", &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(stack, s("Logs"), nil)})
		locks.Connect(fn, nil)
		locks.AddAlarms(nil)
		if got := synthesisedMessages(fn, "warning"); len(got) != 0 {
			t.Errorf("%q", got)
		}
	})
}
