package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

func TestLinesAreCounted(t *testing.T) {
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
			filters := resources(t, c.stack, "AWS::Logs::MetricFilter")
			if len(filters) != 6 {
				t.Errorf("%d filters", len(filters))
			}
			for _, p := range filters {
				if group := encoded(p["LogGroupName"]); !strings.HasPrefix(group, `{"Ref":"`+c.group) {
					t.Errorf("the filter is on %s", group)
				}
			}
			if n := len(resources(t, c.stack, "AWS::Logs::LogGroup")); n != 1 {
				t.Errorf("%d log groups, want 1", n)
			}
		})
	}
}

// TestLinesOfASharedLogGroup: a line counts once for each table, however many
// of its functions write to the log group.
func TestLinesOfASharedLogGroup(t *testing.T) {
	for name, c := range map[string]struct {
		group   func(stack awscdk.Stack, fn string) awslogs.ILogGroup
		filters int
	}{
		"of the app": {func(stack awscdk.Stack, _ string) awslogs.ILogGroup {
			if made := stack.Node().TryFindChild(s("Logs")); made != nil {
				return made.(awslogs.ILogGroup)
			}
			return awslogs.NewLogGroup(stack, s("Logs"), nil)
		}, 12},
		"imported for each function": {func(stack awscdk.Stack, fn string) awslogs.ILogGroup {
			return awslogs.LogGroup_FromLogGroupName(stack, s(fn+"Logs"), s("/shop"))
		}, 12},
		"none": {func(stack awscdk.Stack, fn string) awslogs.ILogGroup {
			return awslogs.NewLogGroup(stack, s(fn+"Logs"), nil)
		}, 24},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			for _, table := range []string{"Dev", "Prod"} {
				locks := infra.NewLockTable(stack, s(table), nil)
				for _, id := range []string{table + "A", table + "B"} {
					locks.Connect(newFunction(stack, id, &awslambda.FunctionProps{LogGroup: c.group(stack, id)}), nil)
				}
			}
			filters := resources(t, stack, "AWS::Logs::MetricFilter")
			different := map[string]bool{}
			for _, p := range filters {
				different[encoded(p)] = true
			}
			if len(filters) != c.filters || len(different) != c.filters {
				t.Errorf("%d filters, of which %d differ, want %d", len(filters), len(different), c.filters)
			}
		})
	}
}

// TestLinesOfEachTable: the alarm of one table does not hear of what the
// functions of another table do. The function is in a stack of its own.
func TestLinesOfEachTable(t *testing.T) {
	app := awscdk.NewApp(nil)
	data, code := newStackIn(app, "Data", "111111111111", "eu-west-1"), newStackIn(app, "Code", "111111111111", "eu-west-1")
	dev, prod := infra.NewLockTable(data, s("Dev"), &infra.LockTableProps{TableName: s("dev-locks")}), infra.NewLockTable(data, s("Prod"), &infra.LockTableProps{TableName: s("prod-locks")})
	dev.AddAlarms(nil)
	prod.AddAlarms(nil)
	dev.Connect(newFunction(code, "Fn", &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(code, s("Logs"), nil)}), nil)
	namespaces := map[string]bool{} // of all metrics named Lost
	for _, p := range resources(t, data, "AWS::CloudWatch::Alarm") {
		if p["MetricName"] == "Lost" {
			namespaces[encoded(p["Namespace"])] = true
		}
	}
	if len(namespaces) != 2 {
		t.Errorf("two tables are watched in %v", namespaces)
	}
	for _, p := range resources(t, code, "AWS::Logs::MetricFilter") {
		transformations, _ := p["MetricTransformations"].([]any)
		if got := encoded(at(transformations[0], "MetricNamespace")); !strings.Contains(got, "lambdalock/") || !strings.Contains(got, "Dev") || strings.Contains(got, "Prod") {
			t.Errorf("the function of the development table is counted in %s", got)
		}
	}
}

// TestLogLevel: a level above that of a message which is counted hides it, and
// one above INFO all lines of a text logger.
func TestLogLevel(t *testing.T) {
	alarms := func(_ awscdk.Stack, _ awslambda.Function, locks infra.LockTable) { locks.AddAlarms(nil) }
	const notCounted = "the CDK does not manage its log group"
	for name, c := range map[string]struct {
		level awslambda.ApplicationLogLevel
		build buildFunc
		want  []string
	}{
		"default":             {"", nil, nil},
		"INFO":                {"INFO", nil, nil},
		"WARN":                {"WARN", nil, []string{"is WARN, which drops every line that has no level"}},
		"ERROR":               {"ERROR", nil, []string{"is ERROR, which drops every line that has no level"}},
		"FATAL":               {"FATAL", nil, []string{"its application log level is FATAL, which drops the error of a lost lease"}},
		"default with alarms": {"", alarms, []string{notCounted}},
		"WARN with alarms":    {"WARN", alarms, []string{notCounted, "so no alarm sees it"}},
		"ERROR with alarms":   {"ERROR", alarms, []string{notCounted, "its application log level is ERROR, which drops the warnings of locks that were taken over and of interrupted events, so the alarms TakenOver and Interrupted do not see it"}},
	} {
		props := &awslambda.FunctionProps{LoggingFormat: awslambda.LoggingFormat_JSON, ApplicationLogLevelV2: c.level}
		t.Run(name, func(t *testing.T) { checkCase{fn: props, build: c.build, want: c.want}.run(t, "warning") })
		t.Run(name+", EMF", func(t *testing.T) {
			checkCase{fn: props, table: &infra.LockTableProps{EMF: jsii.Bool(true)}, build: c.build}.run(t, "warning")
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
func TestNotCounted(t *testing.T) {
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
