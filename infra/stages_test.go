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
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

// said fails unless the warnings about fn are those, in this order.
func said(t *testing.T, fn awslambda.Function, want ...string) {
	t.Helper()
	got := messages(fn, "warning")
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("%s: says %q", *fn.Node().Path(), got[i])
		case i >= len(got):
			t.Errorf("%s: does not say %q", *fn.Node().Path(), want[i])
		case !strings.Contains(got[i], want[i]):
			t.Errorf("%s: says %q, want %q", *fn.Node().Path(), got[i], want[i])
		}
	}
}

// TestStages: each is synthesised by itself, and its functions are judged by what is
// in it. A pipeline synthesises a stage before the app.
func TestStages(t *testing.T) {
	app := awscdk.NewApp(nil)
	var fns []awslambda.Function
	for i, visibility := range []float64{59, 60, 58} {
		stage := awscdk.NewStage(app, s(fmt.Sprint("Stage", i)), nil)
		stack := awscdk.NewStack(stage, s("Stack"), nil)
		fn := newFunction(stack, "Fn", nil)
		infra.NewLockTable(awscdk.NewStack(stage, s("Data"), nil), s("Locks"), nil).Connect(fn, nil)
		fn.AddEventSource(reading(queue(stack, visibility)))
		fns = append(fns, fn)
		if i == 0 {
			stage.Synth(nil)
			said(t, fn, "Stage0/Stack/Queue/Resource is 59 s")
		}
	}
	app.Synth(nil)
	said(t, fns[0], "Stage0/Stack/Queue/Resource is 59 s")
	said(t, fns[1])
	said(t, fns[2], "Stage2/Stack/Queue/Resource is 58 s")
}

// TestTablesShareASurvey: what is said is said once, about the right function, and
// each stack may use the same ids.
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
		if source := reading(queue(stack, float64(10+i))); i%3 == 0 {
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
			said(t, fn, fmt.Sprintf("Code%d/Queue/Resource is %d s", i, 10+i))
		} else {
			said(t, fn)
		}
	}
}

// TestNothingConnected: there is nobody to say anything about.
func TestNothingConnected(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	newFunction(stack, "Fn", nil).AddEventSource(reading(queue(stack, 59)))
	infra.NewLockTable(stack, s("Locks"), nil).Alarms(nil)
	if n := len(*app.Synth(nil).GetStackByName(s("Test")).Messages()); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// adding is an aspect of somebody else, which adds to functions what they lacked.
type adding struct{ to func(awslambda.Function) }

func (a *adding) Visit(node constructs.IConstruct) {
	if fn, ok := node.(awslambda.Function); ok && strings.HasSuffix(*node.Node().Path(), "/Fn") {
		a.to(fn)
	}
}

// shrinking is one that changes queues at their own node.
type shrinking struct{}

func (*shrinking) Visit(node constructs.IConstruct) {
	if q, ok := node.(awssqs.CfnQueue); ok {
		q.SetVisibilityTimeout(jsii.Number(59))
	}
}

// TestOtherAspects: what they add and change is seen, wherever it is in the app.
func TestOtherAspects(t *testing.T) {
	for _, stabilized := range []bool{false, true} {
		t.Run(fmt.Sprint("stabilized ", stabilized), func(t *testing.T) {
			app := awscdk.NewApp(&awscdk.AppProps{Context: &object{"@aws-cdk/core:aspectStabilization": stabilized}})
			stack := awscdk.NewStack(app, s("Test"), nil)
			l := infra.NewLockTable(stack, s("Locks"), nil) // before everything else
			q := queue(stack, 60)
			fn := newFunction(stack, "Fn", nil)
			l.Connect(fn, nil)
			fn.AddEventSource(reading(q))
			done := false
			awscdk.Aspects_Of(stack).Add(&adding{func(fn awslambda.Function) {
				if done {
					return
				}
				done = true
				fn.Node().DefaultChild().(awslambda.CfnFunction).SetTimeout(jsii.Number(20))
				fn.AddPermission(s("Late"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
			}}, nil)
			awscdk.Aspects_Of(stack).Add(&shrinking{}, nil)
			app.Synth(nil)
			if got := strings.Join(messages(fn, "warning"), "\n"); !strings.Contains(got, "is 59 s, less than six times the function's timeout of 20 s") || !strings.Contains(got, "asynchronously (s3)") {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestConnectInAnAspect: at the function itself, or when it has been visited.
func TestConnectInAnAspect(t *testing.T) {
	for _, id := range []string{"Fn", "Before"} {
		app := awscdk.NewApp(nil)
		stack := awscdk.NewStack(app, s("Test"), nil)
		l := infra.NewLockTable(stack, s("Locks"), nil)
		l.Alarms(nil)
		before, fn := newFunction(stack, "Before", nil), newFunction(stack, "Fn", nil)
		target := map[string]awslambda.Function{"Before": before, "Fn": fn}[id]
		target.AddEventSource(reading(queue(stack, 59)))
		connected := false
		awscdk.Aspects_Of(stack).Add(&adding{func(awslambda.Function) {
			if !connected {
				connected = true
				l.Connect(target, nil)
			}
		}}, nil)
		app.Synth(nil)
		if got := strings.Join(messages(target, "warning"), "\n"); !strings.Contains(got, "is 59 s") || !strings.Contains(got, "are not counted") {
			t.Errorf("%s: %q", id, got)
		}
		if len(statements(t, stack, "dynamodb:")) != 1 {
			t.Errorf("%s: no permission", id)
		}
	}
}

// TestSynthesisedTwice: the second time sees what was changed, and nothing double.
func TestSynthesisedTwice(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	fn := newFunction(stack, "Fn", nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	q := queue(stack, 60)
	fn.AddEventSource(reading(q))
	app.Synth(nil)
	said(t, fn)
	q.Node().DefaultChild().(awssqs.CfnQueue).SetVisibilityTimeout(jsii.Number(59))
	again := &awscdk.StageSynthesisOptions{Force: jsii.Bool(true)}
	app.Synth(again)
	said(t, fn, "is 59 s")
	fn.AddPermission(s("Late"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
	app.Synth(again)
	said(t, fn, "is 59 s", "asynchronously (s3)")
}

// TestNestedStacks: their references become parameters.
func TestNestedStacks(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	l := infra.NewLockTable(stack, s("Locks"), nil)
	code := awscdk.NewNestedStack(stack, s("Code"), nil)
	queues := awscdk.NewNestedStack(stack, s("Queues"), nil)
	fn := newFunction(code, "Fn", nil)
	l.Connect(fn, nil)
	fn.AddEventSource(reading(queue(queues, 59)))
	app.Synth(nil)
	said(t, fn, "Test/Queues/Queue/Resource is 59 s")
	if got := messages(fn, "error"); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestAliasInAnotherStack: of it only the logical id is seen.
func TestAliasInAnotherStack(t *testing.T) {
	app := awscdk.NewApp(nil)
	code, sources := awscdk.NewStack(app, s("Code"), nil), awscdk.NewStack(app, s("Sources"), nil)
	fn := newFunction(code, "Fn", nil)
	infra.NewLockTable(code, s("Locks"), nil).Connect(fn, nil)
	alias := fn.AddAlias(s("live"), nil)
	awslambda.NewEventSourceMapping(sources, s("Mapping"), &awslambda.EventSourceMappingProps{
		Target: alias, EventSourceArn: queue(sources, 59).QueueArn(), ReportBatchItemFailures: jsii.Bool(true),
	})
	app.Synth(nil)
	said(t, fn, "Sources/Queue/Resource is 59 s")
}

// TestOtherFunctions: imported ones, and those that are not connected, have nothing
// to do with the one that is.
func TestOtherFunctions(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	fn := newFunction(stack, "Fn", nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	imported := awslambda.Function_FromFunctionArn(stack, s("Imported"), s("arn:aws:lambda:eu-west-1:111111111111:function:other"))
	q := queue(stack, 59)
	imported.AddEventSource(reading(q))
	awslambda.NewCfnEventSourceMapping(stack, s("ByParameter"), &awslambda.CfnEventSourceMappingProps{
		FunctionName: awscdk.NewCfnParameter(stack, s("P"), nil).ValueAsString(), EventSourceArn: q.QueueArn(),
	})
	awslambda.NewCfnPermission(stack, s("Permission"), &awslambda.CfnPermissionProps{
		Action: s("lambda:InvokeFunction"), FunctionName: s("other"), Principal: s("s3.amazonaws.com"),
	})
	app.Synth(nil)
	said(t, fn)
}

// TestFilteredInAVPC: neither has to do with locks.
func TestFilteredInAVPC(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	fn := newFunction(stack, "Fn", &awslambda.FunctionProps{Vpc: awsec2.NewVpc(stack, s("Vpc"), nil)})
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	fn.AddEventSource(awslambdaeventsources.NewSqsEventSource(queue(stack, 59), &awslambdaeventsources.SqsEventSourceProps{
		Filters: &[]*map[string]any{awslambda.FilterCriteria_Filter(&object{"body": awslambda.FilterRule_Exists()})},
	}))
	app.Synth(nil)
	said(t, fn, "is 59 s", "does not report batch item failures")
}

// TestFunctionWithoutItsResource: what cannot be matched is not blamed on it.
func TestFunctionWithoutItsResource(t *testing.T) {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Test"), nil)
	fn := newFunction(stack, "Fn", nil)
	fn.Node().SetDefaultChild(constructs.NewConstruct(fn, s("Else")))
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	awslambda.NewCfnEventSourceMapping(stack, s("Mapping"), &awslambda.CfnEventSourceMappingProps{
		FunctionName: s("other"), EventSourceArn: queue(stack, 59).QueueArn(),
	})
	app.Synth(nil)
	said(t, fn)
}

// TestAspectsOfOthersMayCome: what works without a lock table works beside one. The
// CDK refuses an aspect at a node where one of a higher priority value has been.
func TestAspectsOfOthersMayCome(t *testing.T) {
	app := awscdk.NewApp(&awscdk.AppProps{Context: &object{"@aws-cdk/core:aspectStabilization": true}})
	stack := awscdk.NewStack(app, s("Test"), nil)
	l := infra.NewLockTable(stack, s("Locks"), nil)
	q := queue(stack, 59)
	fn := newFunction(stack, "Fn", nil)
	l.Connect(fn, nil)
	fn.AddEventSource(reading(q))
	done := false
	awscdk.Aspects_Of(stack).Add(&adding{func(awslambda.Function) {
		if !done {
			done = true
			awscdk.Tags_Of(q).Add(s("team"), s("orders"), nil)
		}
	}}, nil)
	app.Synth(nil)
	said(t, fn, "is 59 s")
}
