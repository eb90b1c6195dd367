package infra_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

var s = jsii.String

// newStack returns the stack Test of a new app.
func newStack() awscdk.Stack { return awscdk.NewStack(awscdk.NewApp(nil), s("Test"), nil) }

// newStackIn returns a stack in an account and a Region. Empty means unknown.
func newStackIn(scope constructs.Construct, id, account, region string) awscdk.Stack {
	env := &awscdk.Environment{}
	if account != "" {
		env.Account = s(account)
	}
	if region != "" {
		env.Region = s(region)
	}
	return awscdk.NewStack(scope, s(id), &awscdk.StackProps{Env: env})
}

// newFunction returns a function with a timeout of 10 s, unless props have one.
func newFunction(stack awscdk.Stack, id string, props *awslambda.FunctionProps) awslambda.Function {
	if props == nil {
		props = &awslambda.FunctionProps{}
	}
	props.Runtime = awslambda.Runtime_NODEJS_LATEST() // one that takes inline code
	props.Handler = s("index.handler")
	props.Code = awslambda.Code_FromInline(s("//"))
	if props.Timeout == nil {
		props.Timeout = awscdk.Duration_Seconds(jsii.Number(10))
	}
	return awslambda.NewFunction(stack, s(id), props)
}

// newQueue returns a queue in which only the visibility timeout, in seconds,
// may be wrong.
func newQueue(stack awscdk.Stack, visibility float64) awssqs.Queue {
	return awssqs.NewQueue(stack, s("Queue"), &awssqs.QueueProps{
		VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(visibility)), DeadLetterQueue: newDeadLetterQueue(stack, 5),
	})
}

func newDeadLetterQueue(stack awscdk.Stack, receives float64) *awssqs.DeadLetterQueue {
	longer := &awssqs.QueueProps{RetentionPeriod: awscdk.Duration_Days(jsii.Number(14))}
	return &awssqs.DeadLetterQueue{Queue: awssqs.NewQueue(stack, s("Failed"), longer), MaxReceiveCount: jsii.Number(receives)}
}

// fromQueue returns an event source that takes partial answers.
func fromQueue(q awssqs.IQueue) awslambda.IEventSource {
	return awslambdaeventsources.NewSqsEventSource(q, &awslambdaeventsources.SqsEventSourceProps{ReportBatchItemFailures: jsii.Bool(true)})
}

// kept keeps the records that Lambda gives up.
func kept(stack awscdk.Stack) awslambda.IEventSourceDlq {
	return awslambdaeventsources.NewSqsDlq(awssqs.NewQueue(stack, s("Kept"), nil))
}

// buildFunc adds to a stack what a case is about, after fn has been connected.
type buildFunc = func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable)

// checkCase is a stack with the connected function Test/Fn. Each message about
// the function contains one of the texts in want, and there are no other
// messages.
type checkCase struct {
	fn    *awslambda.FunctionProps
	table *infra.LockTableProps
	build buildFunc
	want  []string
}

// run checks the messages of a level, "warning" or "error", and returns the
// stack and the messages.
func (c checkCase) run(t *testing.T, level string) (awscdk.Stack, []string) {
	t.Helper()
	stack := newStack()
	fn := newFunction(stack, "Fn", c.fn)
	locks := infra.NewLockTable(stack, s("Locks"), c.table)
	locks.Connect(fn, nil)
	if c.build != nil {
		c.build(stack, fn, locks)
	}
	got := synthesisedMessages(fn, level)
	if len(got) != len(c.want) {
		t.Fatalf("%d messages, want %d: %q", len(got), len(c.want), got)
	}
	for _, w := range c.want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("no message contains %q: %q", w, got)
		}
	}
	for _, m := range got {
		if !strings.HasPrefix(m, "lambdalock: function Test/Fn") {
			t.Errorf("a message does not name the function: %q", m)
		}
	}
	return stack, got
}

// synthesisedMessages synthesises the stack of a connected function and returns
// the messages of a level, "warning" or "error", about the function.
func synthesisedMessages(fn awslambda.Function, level string) []string {
	assertions.Annotations_FromStack(fn.Stack())
	return messages(fn, level)
}

// messages returns the messages about a connected function of a synthesised
// app.
func messages(fn awslambda.Function, level string) []string {
	return annotations(fn.Node().FindChild(s("LockTableConnection")).Node(), level)
}

// annotations returns the messages of a node.
func annotations(node constructs.Node, level string) []string {
	var list []string
	for _, m := range *node.Metadata() {
		if *m.Type == "aws:cdk:"+level {
			list = append(list, fmt.Sprint(m.Data))
		}
	}
	return list
}

// wantWarnings fails unless fn, of a synthesised app, has exactly these
// warnings, in this order.
func wantWarnings(t *testing.T, fn awslambda.Function, want ...string) {
	t.Helper()
	got := messages(fn, "warning")
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("%s: unexpected warning %q", *fn.Node().Path(), got[i])
		case i >= len(got):
			t.Errorf("%s: no warning %q", *fn.Node().Path(), want[i])
		case !strings.Contains(got[i], want[i]):
			t.Errorf("%s: the warning is %q, want %q", *fn.Node().Path(), got[i], want[i])
		}
	}
}

// panicOf returns what f panics with.
func panicOf(t *testing.T, f func()) (message string) {
	t.Helper()
	defer func() {
		r := recover()
		if r == nil {
			t.Error("no panic")
		}
		message = fmt.Sprint(r)
	}()
	f()
	return ""
}

// object is a JSON object.
type object = map[string]any

// resources returns the properties of all resources of a type in stack's
// template.
func resources(t *testing.T, stack awscdk.Stack, kind string) []object {
	t.Helper()
	var list []object
	for _, r := range *assertions.Template_FromStack(stack, nil).FindResources(s(kind), nil) {
		p, _ := (*r)["Properties"].(object)
		list = append(list, p)
	}
	return list
}

// only returns the properties of the single resource of a type.
func only(t *testing.T, stack awscdk.Stack, kind string) object {
	t.Helper()
	list := resources(t, stack, kind)
	if len(list) != 1 {
		t.Fatalf("%d resources %s, want 1", len(list), kind)
	}
	return list[0]
}

// statements returns the statements of all policies in stack that name a
// service, such as "dynamodb:".
func statements(t *testing.T, stack awscdk.Stack, service string) []object {
	t.Helper()
	var list []object
	for _, p := range resources(t, stack, "AWS::IAM::Policy") {
		for _, e := range p["PolicyDocument"].(object)["Statement"].([]any) {
			if e := e.(object); strings.Contains(encoded(e["Action"]), service) {
				list = append(list, e)
			}
		}
	}
	return list
}

// at returns the value at a path of keys.
func at(v any, path ...string) any {
	for _, key := range path {
		o, _ := v.(object)
		v = o[key]
	}
	return v
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// equal compares as JSON.
func equal(t *testing.T, what string, got any, want string) {
	t.Helper()
	var w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if encoded(got) != encoded(w) {
		t.Errorf("%s is %s, want %s", what, encoded(got), want)
	}
}
