package infra_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

var update = flag.Bool("update", false, "write the templates in alarms and testdata")

// The alarms whose numbers the library writes, and those of the table.
var (
	counted = []string{"Lost", "CompleteFailed", "Unlocked", "Interrupted", "StoreFailed", "TakenOver", "Contention"}
	ofTable = []string{"Throttles", "SystemErrors"}
)

// TestAlarmTemplates: the templates in alarms are what the construct makes.
// They are for users without the CDK; telemetry/emf drives each alarm in them
// by its fault.
func TestAlarmTemplates(t *testing.T) {
	for name, c := range map[string]struct {
		emf    bool
		alarms []string
	}{"logs": {false, slices.Concat(counted, ofTable)}, "emf": {true, slices.Concat(counted, ofTable)}, "held": {true, []string{"OldestHeld"}}} {
		t.Run(name, func(t *testing.T) {
			wantFile(t, "alarms/"+name+".json", alarmTemplate(t, c.emf, c.alarms))
		})
	}
}

// wantFile checks that a file has what the construct makes.
func wantFile(t *testing.T, file string, made []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, want) {
		t.Errorf("the construct differs from %s; to see how, run go test -run %s . -update and git diff", file, strings.Split(t.Name(), "/")[0])
	}
}

// alarmTemplate returns these alarms of a table and of one function, as a
// template with the parameters that they use.
func alarmTemplate(t *testing.T, emf bool, alarms []string) []byte {
	t.Helper()
	stack := newStack()
	parameter := func(name, description string) *string {
		return awscdk.NewCfnParameter(stack, s(name), &awscdk.CfnParameterProps{Description: s(description)}).ValueAsString()
	}
	locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{EMF: &emf})
	locks.AddAlarms(&infra.AlarmsProps{HeldFor: awscdk.Duration_Hours(jsii.Number(1)), Topic: awssns.Topic_FromTopicArn(stack, s("Alerts"), parameter("Topic", "ARN of the topic that is notified"))})
	options := &infra.ConnectOptions{Namespace: s("-")}
	if emf {
		options.Namespace = parameter("Namespace", "LOCK_NAMESPACE of the function")
	} else {
		options.LogGroup = awslogs.LogGroup_FromLogGroupName(stack, s("Logs"), parameter("LogGroup", "name of the log group of the function"))
	}
	locks.Connect(awslambda.Function_FromFunctionName(stack, s("Fn"), s("-")), options)

	synthesised := *assertions.Template_FromStack(stack, nil).ToJSON()
	parameters, resources := synthesised["Parameters"].(object), object{}
	delete(parameters, "BootstrapVersion")
	parameters["Table"] = object{"Type": "String", "Description": "name of the lock table"}
	for id, r := range synthesised["Resources"].(object) {
		for _, name := range alarms {
			switch kind := at(r, "Type"); {
			case strings.Contains(id, name) && kind == "AWS::CloudWatch::Alarm":
				resources[name] = r
			case strings.Contains(id, name) && kind == "AWS::Logs::MetricFilter":
				resources[name+"Lines"] = r
			}
		}
	}
	maps.DeleteFunc(parameters, func(name string, _ any) bool {
		return !strings.Contains(encoded(resources), encoded(object{"Ref": name})) && name != "Table"
	})
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(object{"Parameters": parameters, "Resources": resources}); err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("LocksTable84FB9352"), []byte("Table"))
}

// TestAlarmsNotify: every alarm takes every action when it begins, and when it
// ends.
func TestAlarmsNotify(t *testing.T) {
	for _, emf := range []bool{false, true} {
		t.Run(fmt.Sprint("emf ", emf), func(t *testing.T) {
			stack := newStack()
			action := func(id string) []awscloudwatch.IAlarmAction {
				return []awscloudwatch.IAlarmAction{awscloudwatchactions.NewSnsAction(awssns.NewTopic(stack, s(id), nil))}
			}
			locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{EMF: &emf})
			locks.Connect(newFunction(stack, "Before", nil), nil)
			locks.AddAlarms(&infra.AlarmsProps{
				Topic: awssns.NewTopic(stack, s("Alerts"), nil), Actions: action("Begins"), OKActions: action("Ends"), ContentionThreshold: jsii.Number(7),
				HeldFor: awscdk.Duration_Hours(jsii.Number(2)),
			})
			locks.Connect(newFunction(stack, "After", nil), nil)
			all := resources(t, stack, "AWS::CloudWatch::Alarm")
			for _, p := range all {
				begins, ends := encoded(p["AlarmActions"]), encoded(p["OKActions"])
				if !strings.Contains(begins, `{"Ref":"Alerts`) || !strings.Contains(begins, `{"Ref":"Begins`) || strings.Contains(begins, "Ends") ||
					!strings.Contains(ends, `{"Ref":"Alerts`) || !strings.Contains(ends, `{"Ref":"Ends`) || strings.Contains(ends, "Begins") {
					t.Errorf("%s: begins %s, ends %s", p["AlarmDescription"], begins, ends)
				}
			}
			for _, threshold := range []float64{7, 7200} {
				assertions.Template_FromStack(stack, nil).HasResourceProperties(s("AWS::CloudWatch::Alarm"), object{"Threshold": threshold})
			}
			ofTable := append([]string{"OldestHeld"}, ofTable...)
			places := map[string][]string{"Locks": slices.Concat(ofTable, counted)}
			if emf {
				const child = "/LockTableConnection"
				places = map[string][]string{"Locks": ofTable, "Before" + child: counted, "After" + child: counted}
			}
			n := 0
			for place, names := range places {
				for _, name := range names {
					n++
					if alarmAt(stack, place+"/"+name) == nil {
						t.Errorf("no alarm %s/%s", place, name)
					}
				}
			}
			if len(all) != n {
				t.Errorf("%d alarms, want %d", len(all), n)
			}
			if got := synthesisedWarnings(locks); len(got) != 0 {
				t.Errorf("%q", got)
			}
		})
	}
}

// alarmAt returns the alarm at a path below stack, or nil.
func alarmAt(stack awscdk.Stack, path string) awscloudwatch.Alarm {
	node := constructs.IConstruct(stack)
	for _, id := range strings.Split(path, "/") {
		if node = node.Node().TryFindChild(s(id)); node == nil {
			return nil
		}
	}
	a, _ := node.(awscloudwatch.Alarm)
	return a
}

// synthesisedWarnings synthesises the stack of a lock table and returns the
// warnings about the table.
func synthesisedWarnings(locks infra.LockTable) []string {
	assertions.Annotations_FromStack(awscdk.Stack_Of(locks))
	return annotations(locks.Table().Node(), "warning")
}

// TestAlarmsNobodyHears: alarms without an action are worth one warning.
func TestAlarmsNobodyHears(t *testing.T) {
	stack := newStack()
	silent := infra.NewLockTable(stack, s("Silent"), nil)
	silent.AddAlarms(nil)
	later := infra.NewLockTable(stack, s("Later"), nil)
	later.AddAlarms(&infra.AlarmsProps{OKActions: []awscloudwatch.IAlarmAction{}})
	for _, name := range slices.Concat(ofTable, counted) {
		alarmAt(stack, "Later/"+name).AddAlarmAction(awscloudwatchactions.NewSnsAction(awssns.Topic_FromTopicArn(stack, s(name), s("arn:aws:sns:eu-west-1:111111111111:alerts"))))
	}
	acknowledged := infra.NewLockTable(stack, s("Acknowledged"), nil)
	acknowledged.AddAlarms(nil)
	awscdk.Annotations_Of(acknowledged).AcknowledgeWarning(s(infra.WarnNoAction), nil)
	for _, c := range []struct {
		locks infra.LockTable
		want  int
	}{{silent, 1}, {later, 0}, {acknowledged, 0}} {
		got := synthesisedWarnings(c.locks)
		if len(got) != c.want || c.want > 0 && !strings.HasPrefix(got[0], "lambdalock: alarms of lock table Test/Silent take no action") {
			t.Errorf("%s: %q", *c.locks.Node().Path(), got)
		}
	}
}

// TestServicesThatShareANamespace: two functions with one namespace write the
// same metrics, which are watched once.
func TestServicesThatShareANamespace(t *testing.T) {
	stack := newStack()
	locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{EMF: jsii.Bool(true)})
	locks.AddAlarms(nil)
	for _, id := range []string{"A", "B"} {
		locks.Connect(newFunction(stack, id, nil), &infra.ConnectOptions{Namespace: s("orders")})
	}
	if n := len(resources(t, stack, "AWS::CloudWatch::Alarm")); n != len(ofTable)+len(counted) {
		t.Errorf("%d alarms", n)
	}
}

// TestNamespaceAsDimension: telemetry/emf writes it differently, so that
// alarms would watch nothing.
func TestNamespaceAsDimension(t *testing.T) {
	for _, namespace := range []string{"ö", " ", ":orders", "a\nb"} {
		stack := newStack()
		locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{EMF: jsii.Bool(true)})
		fn := newFunction(stack, "Fn", nil)
		if m := panicOf(t, func() { locks.Connect(fn, &infra.ConnectOptions{Namespace: &namespace}) }); !strings.Contains(m, "which CloudWatch does not take as the value of a dimension") {
			t.Errorf("%q: %s", namespace, m)
		}
	}
}

// TestLook: the function that looks for the alarm OldestHeld may read all rows.
func TestLook(t *testing.T) {
	stack := newStack()
	locks := infra.NewLockTable(stack, s("Locks"), nil)
	looks := newFunction(stack, "Looks", nil)
	looks.AddEnvironment(s("LOCK_TABLE_NAME"), locks.Table().TableName(), nil)
	locks.GrantInspect(looks)
	awsevents.NewRule(stack, s("Look"), &awsevents.RuleProps{
		Schedule: awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(10))),
		Targets:  &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(looks, nil)},
	})
	if allowed := encoded(statements(t, stack, "dynamodb:")); !strings.Contains(allowed, "dynamodb:Scan") || strings.Contains(allowed, "LeadingKeys") {
		t.Errorf("the function may %s", allowed)
	}
	if got := synthesisedWarnings(locks); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestAlarmsTwice(t *testing.T) {
	locks := infra.NewLockTable(newStack(), s("Locks"), nil)
	locks.AddAlarms(nil)
	if m := panicOf(t, func() { locks.AddAlarms(nil) }); m != "lambdalock: lock table Test/Locks already has alarms: call AddAlarms once, with all topics and actions in AlarmsProps" {
		t.Error(m)
	}
}
