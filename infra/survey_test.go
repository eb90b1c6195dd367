package infra_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

// TestStages: every stage is synthesised separately, and its functions are
// checked against its resources. A pipeline synthesises a stage before the
// app.
func TestStages(t *testing.T) {
	app := awscdk.NewApp(nil)
	var fns []awslambda.Function
	for i, visibility := range []float64{59, 60, 58} {
		stage := awscdk.NewStage(app, s(fmt.Sprint("Stage", i)), nil)
		stack := awscdk.NewStack(stage, s("Stack"), nil)
		fn := newFunction(stack, "Fn", nil)
		infra.NewLockTable(awscdk.NewStack(stage, s("Data"), nil), s("Locks"), nil).Connect(fn, nil)
		fn.AddEventSource(fromQueue(newQueue(stack, visibility)))
		fns = append(fns, fn)
		if i == 0 {
			stage.Synth(nil)
			wantWarnings(t, fn, "Stage0/Stack/Queue/Resource is 59 s")
		}
	}
	app.Synth(nil)
	wantWarnings(t, fns[0], "Stage0/Stack/Queue/Resource is 59 s")
	wantWarnings(t, fns[1])
	wantWarnings(t, fns[2], "Stage2/Stack/Queue/Resource is 58 s")
}

// TestTablesShareASurvey: every warning is added once, to the right function,
// even if all stacks use the same ids.
func TestTablesShareASurvey(t *testing.T) {
	app := awscdk.NewApp(nil)
	data := awscdk.NewStack(app, s("Data"), nil)
	tables := []infra.LockTable{infra.NewLockTable(data, s("One"), nil), infra.NewLockTable(data, s("Two"), nil)}
	if n := len(*awscdk.Aspects_Of(app).All()); n != 1 {
		t.Errorf("%d aspects, want 1 for all tables", n)
	}
	var fns []awslambda.Function
	for i := range 100 {
		stack := awscdk.NewStack(app, s(fmt.Sprint("Code", i)), nil)
		fn := newFunction(stack, "Fn", nil)
		if source := fromQueue(newQueue(stack, float64(10+i))); i%3 == 0 {
			fn.AddAlias(s("live"), nil).AddEventSource(source)
		} else {
			fn.AddEventSource(source)
		}
		tables[i%2].Connect(fn, nil)
		fns = append(fns, fn)
	}
	app.Synth(nil)
	for i, fn := range fns {
		if i < 50 {
			wantWarnings(t, fn, fmt.Sprintf("Code%d/Queue/Resource is %d s", i, 10+i))
		} else {
			wantWarnings(t, fn)
		}
	}
}

// TestNothingConnected: without a connected function there are no messages.
func TestNothingConnected(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	newFunction(stack, "Fn", nil).AddEventSource(fromQueue(newQueue(stack, 59)))
	infra.NewLockTable(stack, s("Locks"), nil).AddAlarms(&infra.AlarmsProps{Topic: awssns.NewTopic(stack, s("Alerts"), nil)})
	if n := len(*app.Synth(nil).GetStackByName(s("Test")).Messages()); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// functionAspect is an aspect of the app that changes the functions named Fn.
type functionAspect struct{ change func(awslambda.Function) }

func (a *functionAspect) Visit(node constructs.IConstruct) {
	if fn, ok := node.(awslambda.Function); ok && strings.HasSuffix(*node.Node().Path(), "/Fn") {
		a.change(fn)
	}
}

// queueAspect is an aspect of the app that shortens visibility timeouts.
type queueAspect struct{}

func (*queueAspect) Visit(node constructs.IConstruct) {
	if q, ok := node.(awssqs.CfnQueue); ok {
		q.SetVisibilityTimeout(jsii.Number(59))
	}
}

// TestOtherAspects: the checks see what other aspects add and change.
func TestOtherAspects(t *testing.T) {
	for _, stabilized := range []bool{false, true} {
		t.Run(fmt.Sprint("stabilized ", stabilized), func(t *testing.T) {
			app := awscdk.NewApp(&awscdk.AppProps{Context: &object{"@aws-cdk/core:aspectStabilization": stabilized}})
			stack := awscdk.NewStack(app, s("Test"), nil)
			locks := infra.NewLockTable(stack, s("Locks"), nil) // before everything else
			q := newQueue(stack, 60)
			fn := newFunction(stack, "Fn", nil)
			locks.Connect(fn, nil)
			fn.AddEventSource(fromQueue(q))
			changed := false
			awscdk.Aspects_Of(stack).Add(&functionAspect{func(fn awslambda.Function) {
				if changed {
					return
				}
				changed = true
				fn.Node().DefaultChild().(awslambda.CfnFunction).SetTimeout(jsii.Number(20))
				fn.AddPermission(s("Late"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
			}}, nil)
			awscdk.Aspects_Of(stack).Add(&queueAspect{}, nil)
			app.Synth(nil)
			if got := strings.Join(messages(fn, "warning"), "\n"); !strings.Contains(got, "is 59 s, less than six times the function's timeout of 20 s") || !strings.Contains(got, "asynchronously (s3)") {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestConnectInAnAspect: an aspect connects the function that it visits, or one
// that it has visited before.
func TestConnectInAnAspect(t *testing.T) {
	for _, id := range []string{"Fn", "Before"} {
		t.Run(id, func(t *testing.T) {
			app := awscdk.NewApp(nil)
			stack := awscdk.NewStack(app, s("Test"), nil)
			locks := infra.NewLockTable(stack, s("Locks"), nil)
			locks.AddAlarms(nil)
			before, fn := newFunction(stack, "Before", nil), newFunction(stack, "Fn", nil)
			target := map[string]awslambda.Function{"Before": before, "Fn": fn}[id]
			target.AddEventSource(fromQueue(newQueue(stack, 59)))
			connected := false
			awscdk.Aspects_Of(stack).Add(&functionAspect{func(awslambda.Function) {
				if !connected {
					connected = true
					locks.Connect(target, nil)
				}
			}}, nil)
			app.Synth(nil)
			if got := strings.Join(messages(target, "warning"), "\n"); !strings.Contains(got, "is 59 s") || !strings.Contains(got, "are not counted") {
				t.Errorf("%q", got)
			}
			if len(statements(t, stack, "dynamodb:")) != 1 {
				t.Error("no permission")
			}
		})
	}
}

// TestSynthesisedTwice: the second synthesis sees changes, and repeats no
// warning.
func TestSynthesisedTwice(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	fn := newFunction(stack, "Fn", nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	q := newQueue(stack, 60)
	fn.AddEventSource(fromQueue(q))
	app.Synth(nil)
	wantWarnings(t, fn)
	q.Node().DefaultChild().(awssqs.CfnQueue).SetVisibilityTimeout(jsii.Number(59))
	again := &awscdk.StageSynthesisOptions{Force: jsii.Bool(true)}
	app.Synth(again)
	wantWarnings(t, fn, "is 59 s")
	fn.AddPermission(s("Late"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
	app.Synth(again)
	wantWarnings(t, fn, "is 59 s", "asynchronously (s3)")
}

// TestNestedStacks: references between nested stacks become parameters.
func TestNestedStacks(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	locks := infra.NewLockTable(stack, s("Locks"), nil)
	code := awscdk.NewNestedStack(stack, s("Code"), nil)
	queues := awscdk.NewNestedStack(stack, s("Queues"), nil)
	fn := newFunction(code, "Fn", nil)
	locks.Connect(fn, nil)
	fn.AddEventSource(fromQueue(newQueue(queues, 59)))
	app.Synth(nil)
	wantWarnings(t, fn, "Test/Queues/Queue/Resource is 59 s")
	if got := messages(fn, "error"); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestAliasInAnotherStack: the reference to the alias holds only its logical
// id.
func TestAliasInAnotherStack(t *testing.T) {
	app := awscdk.NewApp(nil)
	code, sources := awscdk.NewStack(app, s("Code"), nil), awscdk.NewStack(app, s("Sources"), nil)
	fn := newFunction(code, "Fn", nil)
	infra.NewLockTable(code, s("Locks"), nil).Connect(fn, nil)
	alias := fn.AddAlias(s("live"), nil)
	awslambda.NewEventSourceMapping(sources, s("Mapping"), &awslambda.EventSourceMappingProps{
		Target: alias, EventSourceArn: newQueue(sources, 59).QueueArn(), ReportBatchItemFailures: jsii.Bool(true),
	})
	app.Synth(nil)
	wantWarnings(t, fn, "Sources/Queue/Resource is 59 s")
}

// TestOtherFunctions: imported functions, and functions that are not connected,
// cause no warnings about the connected one.
func TestOtherFunctions(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	fn := newFunction(stack, "Fn", nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	imported := awslambda.Function_FromFunctionArn(stack, s("Imported"), s("arn:aws:lambda:eu-west-1:111111111111:function:other"))
	q := newQueue(stack, 59)
	imported.AddEventSource(fromQueue(q))
	awslambda.NewCfnEventSourceMapping(stack, s("ByParameter"), &awslambda.CfnEventSourceMappingProps{
		FunctionName: awscdk.NewCfnParameter(stack, s("P"), nil).ValueAsString(), EventSourceArn: q.QueueArn(),
	})
	awslambda.NewCfnPermission(stack, s("Permission"), &awslambda.CfnPermissionProps{
		Action: s("lambda:InvokeFunction"), FunctionName: s("other"), Principal: s("s3.amazonaws.com"),
	})
	app.Synth(nil)
	wantWarnings(t, fn)
}

// TestFilteredInAVPC: event filters and a VPC do not affect the checks.
func TestFilteredInAVPC(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	fn := newFunction(stack, "Fn", &awslambda.FunctionProps{Vpc: awsec2.NewVpc(stack, s("Vpc"), nil)})
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	fn.AddEventSource(awslambdaeventsources.NewSqsEventSource(newQueue(stack, 59), &awslambdaeventsources.SqsEventSourceProps{
		Filters: &[]*map[string]any{awslambda.FilterCriteria_Filter(&object{"body": awslambda.FilterRule_Exists()})},
	}))
	app.Synth(nil)
	wantWarnings(t, fn, "is 59 s", "does not report batch item failures")
}

// TestFunctionWithoutItsResource: a mapping that matches no function causes no
// warnings.
func TestFunctionWithoutItsResource(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	fn := newFunction(stack, "Fn", nil)
	fn.Node().SetDefaultChild(constructs.NewConstruct(fn, s("Else")))
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	awslambda.NewCfnEventSourceMapping(stack, s("Mapping"), &awslambda.CfnEventSourceMappingProps{
		FunctionName: s("other"), EventSourceArn: newQueue(stack, 59).QueueArn(),
	})
	app.Synth(nil)
	wantWarnings(t, fn)
}

// TestAspectsMayBeAddedLater: the survey does not get in the way of other
// aspects. The CDK refuses an aspect that is added to a node after one with a
// higher priority value has visited the node.
func TestAspectsMayBeAddedLater(t *testing.T) {
	app := awscdk.NewApp(&awscdk.AppProps{Context: &object{"@aws-cdk/core:aspectStabilization": true}})
	stack := awscdk.NewStack(app, s("Test"), nil)
	locks := infra.NewLockTable(stack, s("Locks"), nil)
	q := newQueue(stack, 59)
	fn := newFunction(stack, "Fn", nil)
	locks.Connect(fn, nil)
	fn.AddEventSource(fromQueue(q))
	changed := false
	awscdk.Aspects_Of(stack).Add(&functionAspect{func(awslambda.Function) {
		if !changed {
			changed = true
			awscdk.Tags_Of(q).Add(s("team"), s("orders"), nil)
		}
	}}, nil)
	app.Synth(nil)
	wantWarnings(t, fn, "is 59 s")
}
