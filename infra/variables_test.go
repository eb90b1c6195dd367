package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"

	"github.com/lambdalock/lambdalock/infra"
)

// TestVariablesThatAreSetAlready: Connect does not overwrite a different value.
func TestVariablesThatAreSetAlready(t *testing.T) {
	for name, c := range map[string]struct {
		variables map[string]*string
		options   *infra.ConnectOptions
		want      string // panic
	}{
		"another table":          {map[string]*string{"LOCK_TABLE_NAME": s("orders")}, nil, `lambdalock: function Test/Fn already has the environment variable LOCK_TABLE_NAME with the value "orders": remove it, because Connect sets it to the name of Test/Locks`},
		"the table by its name":  {map[string]*string{"LOCK_TABLE_NAME": s("orders-locks")}, nil, ""},
		"another namespace":      {map[string]*string{"LOCK_NAMESPACE": s("shop")}, &infra.ConnectOptions{Namespace: s("orders")}, `lambdalock: function Test/Fn already has the environment variable LOCK_NAMESPACE with the value "shop": remove it, and set ConnectOptions.Namespace instead`},
		"the same namespace":     {map[string]*string{"LOCK_NAMESPACE": s("orders")}, &infra.ConnectOptions{Namespace: s("orders")}, ""},
		"no namespace is given":  {map[string]*string{"LOCK_NAMESPACE": s("shop")}, nil, `lambdalock: function Test/Fn already has the environment variable LOCK_NAMESPACE with the value "shop": remove it, and set ConnectOptions.Namespace instead`},
		"the token of the table": {map[string]*string{"LOCK_TABLE_NAME": nil}, nil, ""},
		"unrelated variables":    {map[string]*string{"STAGE": s("test")}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{TableName: s("orders-locks")})
			if value, ok := c.variables["LOCK_TABLE_NAME"]; ok && value == nil {
				c.variables["LOCK_TABLE_NAME"] = locks.Table().TableName()
			}
			fn := newFunction(stack, "Fn", &awslambda.FunctionProps{Environment: &c.variables})
			connect := func() { locks.Connect(fn, c.options) }
			if c.want == "" {
				connect()
				if got := synthesisedMessages(fn, "error"); len(got) != 0 {
					t.Errorf("%q", got)
				}
				return
			}
			if m := panicOf(t, connect); m != c.want {
				t.Error(m)
			}
		})
	}
}

// TestVariablesThatAreSetLater: the synthesis sees what Connect cannot see.
func TestVariablesThatAreSetLater(t *testing.T) {
	set := func(name, value string) buildFunc {
		return func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEnvironment(s(name), s(value), nil)
		}
	}
	named := &awslambda.FunctionProps{FunctionName: s("orders")}
	for name, c := range map[string]checkCase{
		"another table":      {build: set("LOCK_TABLE_NAME", "orders"), want: []string{`LOCK_TABLE_NAME with the value "orders", which was changed after Connect: remove what sets it, because the function may lock only in Test/Locks`}},
		"another namespace":  {fn: named, build: set("LOCK_NAMESPACE", "shop"), want: []string{`LOCK_NAMESPACE with the value "shop", which was changed after Connect: remove what sets it, and set ConnectOptions.Namespace instead`}},
		"the same namespace": {fn: named, build: set("LOCK_NAMESPACE", "orders")},
		"the table by its name": {
			table: &infra.LockTableProps{TableName: s("orders-locks")}, build: set("LOCK_TABLE_NAME", "orders-locks"),
		},
		"another variable": {fn: named, build: set("STAGE", "test")},
		"no name":          {build: set("LOCK_NAMESPACE", "shop"), want: []string{`LOCK_NAMESPACE with the value "shop", which was changed after Connect`}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "error") })
	}
}

// TestVariablesAcrossStacks: a reference to another stack looks different after
// a synthesis, but still means the same table.
func TestVariablesAcrossStacks(t *testing.T) {
	app := awscdk.NewApp(nil)
	locks := infra.NewLockTable(awscdk.NewStack(app, s("Data"), nil), s("Locks"), nil)
	code := awscdk.NewStack(app, s("Code"), nil)
	fn := newFunction(code, "Fn", nil)
	locks.Connect(fn, nil)
	app.Synth(nil)
	force := true
	app.Synth(&awscdk.StageSynthesisOptions{Force: &force})
	if got := messages(fn, "error"); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if v := encoded(at(only(t, code, "AWS::Lambda::Function"), "Environment", "Variables", "LOCK_TABLE_NAME")); !strings.Contains(v, "Fn::ImportValue") {
		t.Errorf("LOCK_TABLE_NAME is %s", v)
	}
}
