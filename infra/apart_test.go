package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/lambdalock/lambdalock/infra"
)

// TestTableOutOfReach: a function looks for the table in its own Region and account.
func TestTableOutOfReach(t *testing.T) {
	const a, b = "111111111111", "222222222222"
	for name, c := range map[string]struct {
		table, function [2]string // account, Region
		want            string
	}{
		"here":            {[2]string{a, "eu-west-1"}, [2]string{a, "eu-west-1"}, ""},
		"another Region":  {[2]string{a, "eu-west-1"}, [2]string{a, "us-east-1"}, "lambdalock: function Code/Fn runs in Region us-east-1, and its lock table Data/Locks is in eu-west-1: it looks for the table in its own Region and account. Make a lock table there"},
		"another account": {[2]string{a, "eu-west-1"}, [2]string{b, "eu-west-1"}, "lambdalock: function Code/Fn runs in account 222222222222, and its lock table Data/Locks is in 111111111111"},
		"nowhere yet":     {[2]string{"", ""}, [2]string{"", ""}, ""},
		"account known":   {[2]string{a, ""}, [2]string{"", ""}, ""},
		"function known":  {[2]string{"", ""}, [2]string{a, "eu-west-1"}, ""},
		"table known":     {[2]string{a, "eu-west-1"}, [2]string{"", ""}, ""},
	} {
		for _, named := range []*string{nil, s("orders-locks")} {
			if named == nil && c.table != c.function && c.want == "" {
				continue // The CDK asks for a name.
			}
			t.Run(name, func(t *testing.T) {
				app := awscdk.NewApp(nil)
				l := infra.NewLockTable(stackIn(app, "Data", c.table[0], c.table[1]), s("Locks"), &infra.LockTableProps{TableName: named})
				code := stackIn(app, "Code", c.function[0], c.function[1])
				fn := newFunction(code, "Fn", nil)
				l.Connect(fn, nil)
				got := notes(fn, "error")
				connected := len(statements(t, code, "dynamodb:")) == 1
				if c.want == "" && (len(got) != 0 || !connected) {
					t.Errorf("connected is %v: %q", connected, got)
				}
				if c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
					t.Errorf("%q", got)
				}
			})
		}
	}
}

// TestTableInAnotherStage: the CDK refuses references between stages.
func TestTableInAnotherStage(t *testing.T) {
	app := awscdk.NewApp(nil)
	test, live := awscdk.NewStage(app, s("TestStage"), nil), awscdk.NewStage(app, s("LiveStage"), nil)
	l := infra.NewLockTable(awscdk.NewStack(test, s("Data"), nil), s("Locks"), nil)
	fn := newFunction(awscdk.NewStack(live, s("Code"), nil), "Fn", nil)
	l.Connect(fn, nil)
	app.Synth(nil)
	const want = "lambdalock: function LiveStage/Code/Fn is in another stage of the app than its lock table TestStage/Data/Locks: stages are deployed apart. Make a lock table in the function's stage"
	if got := messages(fn, "error"); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%q", got)
	}
}
