package infra_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

var s = jsii.String

func newStack() awscdk.Stack { return awscdk.NewStack(awscdk.NewApp(nil), s("Test"), nil) }

// newFunction has a timeout of 10 s, unless props say otherwise.
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

// object is a JSON object.
type object = map[string]any

// resources are the properties of all resources of a type in the template of stack.
func resources(t *testing.T, stack awscdk.Stack, kind string) []object {
	t.Helper()
	var list []object
	for _, r := range *assertions.Template_FromStack(stack, nil).FindResources(s(kind), nil) {
		p, _ := (*r)["Properties"].(object)
		list = append(list, p)
	}
	return list
}

// only is the properties of the one resource of a type.
func only(t *testing.T, stack awscdk.Stack, kind string) object {
	t.Helper()
	list := resources(t, stack, kind)
	if len(list) != 1 {
		t.Fatalf("%d resources %s, want 1", len(list), kind)
	}
	return list[0]
}

// statements of all policies in stack that name a service, such as "dynamodb:".
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

// panics runs f and returns what it panics with.
func panics(t *testing.T, f func()) (message string) {
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

// notes are the messages of a level, "warning" or "error", about a connected
// function, after the aspects have run.
func notes(fn awslambda.Function, level string) []string {
	assertions.Annotations_FromStack(fn.Stack())
	return messages(fn, level)
}

// messages are those of an app that has been synthesised.
func messages(fn awslambda.Function, level string) []string {
	return data(fn.Node().FindChild(s("LockTableConnection")).Node(), level)
}

func data(node constructs.Node, level string) []string {
	var list []string
	for _, m := range *node.Metadata() {
		if *m.Type == "aws:cdk:"+level {
			list = append(list, fmt.Sprint(m.Data))
		}
	}
	return list
}

// stackIn is a stack of an account and a Region, if they are known.
func stackIn(scope constructs.Construct, id, account, region string) awscdk.Stack {
	env := &awscdk.Environment{}
	if account != "" {
		env.Account = s(account)
	}
	if region != "" {
		env.Region = s(region)
	}
	return awscdk.NewStack(scope, s(id), &awscdk.StackProps{Env: env})
}
