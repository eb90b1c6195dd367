package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/lambdalock/lambdalock/infra"
)

// TestTableOutOfReach: a function looks for the table in its own Region and
// account.
func TestTableOutOfReach(t *testing.T) {
	type place struct{ account, region string }
	const a, b = "111111111111", "222222222222"
	ireland, virginia := "eu-west-1", "us-east-1"
	for name, c := range map[string]struct {
		table, function place
		want            string // beginning of the error
	}{
		"same place": {table: place{a, ireland}, function: place{a, ireland}},
		"different Region": {
			table: place{a, ireland}, function: place{a, virginia},
			want: "lambdalock: function Code/Fn runs in Region us-east-1, but its lock table Data/Locks is in eu-west-1, " +
				"and a function looks for the table in its own Region and account: create a lock table there",
		},
		"different account": {
			table: place{a, ireland}, function: place{b, ireland},
			want: "lambdalock: function Code/Fn runs in account 222222222222, but its lock table Data/Locks is in 111111111111",
		},
		"unknown places":         {},
		"known account of table": {table: place{a, ""}},
		"known function":         {function: place{a, ireland}},
		"known table":            {table: place{a, ireland}},
	} {
		check := func(t *testing.T, tableName *string) {
			app := awscdk.NewApp(nil)
			data := newStackIn(app, "Data", c.table.account, c.table.region)
			code := newStackIn(app, "Code", c.function.account, c.function.region)
			fn := newFunction(code, "Fn", nil)
			infra.NewLockTable(data, s("Locks"), &infra.LockTableProps{TableName: tableName}).Connect(fn, nil)
			got := synthesisedMessages(fn, "error")
			connected := len(statements(t, code, "dynamodb:")) == 1
			if c.want == "" && (len(got) != 0 || !connected) {
				t.Errorf("connected is %v: %q", connected, got)
			}
			if c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("%q", got)
			}
		}
		t.Run(name+", named table", func(t *testing.T) { check(t, s("orders-locks")) })
		if c.table == c.function || c.want != "" { // otherwise the CDK requires a name
			t.Run(name+", unnamed table", func(t *testing.T) { check(t, nil) })
		}
	}
}

// TestTableInAnotherStage: the CDK refuses references between stages.
func TestTableInAnotherStage(t *testing.T) {
	app := awscdk.NewApp(nil)
	test, live := awscdk.NewStage(app, s("TestStage"), nil), awscdk.NewStage(app, s("LiveStage"), nil)
	locks := infra.NewLockTable(awscdk.NewStack(test, s("Data"), nil), s("Locks"), nil)
	fn := newFunction(awscdk.NewStack(live, s("Code"), nil), "Fn", nil)
	locks.Connect(fn, nil)
	app.Synth(nil)
	const want = "lambdalock: function LiveStage/Code/Fn is in a different stage from its lock table TestStage/Data/Locks, " +
		"and stages are deployed separately: create a lock table in the function's stage"
	if got := messages(fn, "error"); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%q", got)
	}
}
