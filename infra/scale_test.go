package infra_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsssm"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

// Every call of the CDK from within one of its callbacks deepens the stack of
// the node process, which ends at about 2,000 calls. So the work in one
// callback must not grow with the app.

// TestManyFunctions: every function is checked, with its own settings.
func TestManyFunctions(t *testing.T) {
	for name, props := range sources {
		t.Run(name, func(t *testing.T) { checkScale(t, 60, 0, props) })
	}
}

// TestManyResources: the one function of a large app is checked.
func TestManyResources(t *testing.T) {
	checkScale(t, 1, 3*450, nil)
}

// sources are where alarms take their numbers from.
var sources = map[string]*infra.LockTableProps{"logs": nil, "EMF": {EMF: jsii.Bool(true)}}

// TestManySources: the warnings about one function come from many callbacks.
func TestManySources(t *testing.T) {
	const streams = 400
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, s("Code"), nil)
	fn := newFunction(stack, "Fn", nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	for i := range streams {
		awslambda.NewCfnEventSourceMapping(stack, s(fmt.Sprint("Mapping", i)), &awslambda.CfnEventSourceMappingProps{
			FunctionName: fn.FunctionName(), EventSourceArn: s(fmt.Sprint("arn:aws:kinesis:eu-west-1:111111111111:stream/", i)),
		})
	}
	app.Synth(nil)
	if got := messages(fn, "warning"); len(got) != 2*streams { // about partial answers and retry limits
		t.Errorf("%d messages, want %d", len(got), 2*streams)
	}
}

// TestLargeApp is run by make soak.
func TestLargeApp(t *testing.T) {
	functions, _ := strconv.Atoi(os.Getenv("LAMBDALOCK_FUNCTIONS"))
	if functions == 0 {
		t.Skip("skipped: takes a minute; LAMBDALOCK_FUNCTIONS=500 runs it, with 500 functions and four times as many other resources (make soak)")
	}
	for name, props := range sources {
		t.Run(name, func(t *testing.T) { checkScale(t, functions, 4*functions, props) })
	}
}

// checkScale synthesises connected functions with alarms, a log group and a
// queue each, half of which have a visibility timeout that is too short, and
// others, which are unrelated resources.
func checkScale(t *testing.T, functions, others int, props *infra.LockTableProps) {
	t.Helper()
	// CloudFormation takes 500 resources in a stack:
	// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
	const functionsPerStack, othersPerStack = 30, 450
	began := time.Now()
	app := awscdk.NewApp(nil)
	data := awscdk.NewStack(app, s("Data"), nil)
	locks := infra.NewLockTable(data, s("Locks"), props)
	locks.AddAlarms(&infra.AlarmsProps{Topic: awssns.NewTopic(data, s("Alerts"), nil)})
	locks.AddDashboard(nil)
	dead := awssqs.NewQueue(awscdk.NewStack(app, s("Failures"), nil), s("Dead"), nil)
	var all []awslambda.Function
	var stack awscdk.Stack
	for i := range functions {
		if i%functionsPerStack == 0 {
			stack = awscdk.NewStack(app, s(fmt.Sprint("Code", i)), nil)
		}
		fn := newFunction(stack, fmt.Sprint("Fn", i), &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(stack, s(fmt.Sprint("Logs", i)), nil)})
		fn.AddEventSource(fromQueue(awssqs.NewQueue(stack, s(fmt.Sprint("Queue", i)), &awssqs.QueueProps{
			VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(59 + i%2)),
			DeadLetterQueue:   &awssqs.DeadLetterQueue{Queue: dead, MaxReceiveCount: jsii.Number(5)},
		})))
		locks.Connect(fn, nil)
		all = append(all, fn)
	}
	for i := range others {
		if i%othersPerStack == 0 {
			stack = awscdk.NewStack(app, s(fmt.Sprint("Other", i)), nil)
		}
		awsssm.NewStringParameter(stack, s(fmt.Sprint("P", i)), &awsssm.StringParameterProps{StringValue: s("-")})
	}
	built := time.Now()
	app.Synth(nil)
	t.Logf("%d functions with a queue each and %d other resources: %v to build, %v to synthesise",
		functions, others, built.Sub(began).Round(time.Millisecond), time.Since(built).Round(time.Millisecond))

	for i, fn := range all {
		got := messages(fn, "warning")
		if i%2 == 0 && (len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf("Fn%d: the visibility timeout of its queue %s/Queue%d/Resource is 59 s", i, *fn.Stack().StackName(), i))) {
			t.Errorf("function %d: %q", i, got)
		}
		if i%2 == 1 && len(got) != 0 {
			t.Errorf("function %d has no fault: %q", i, got)
		}
	}
}
