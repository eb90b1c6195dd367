package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"

	"github.com/lambdalock/lambdalock/infra"
)

// checkCase is a stack with the function Test/Fn, connected after build, and what
// must be said of it: each text must be in one message, and no more messages may be.
type checkCase struct {
	fn    *awslambda.FunctionProps
	table *infra.LockTableProps
	build func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable)
	want  []string
}

func (c checkCase) run(t *testing.T, level string) {
	t.Helper()
	stack := newStack()
	fn := newFunction(stack, "Fn", c.fn)
	l := infra.NewLockTable(stack, s("Locks"), c.table)
	l.Connect(fn, nil)
	if c.build != nil {
		c.build(stack, fn, l)
	}
	got := notes(fn, level)
	if len(got) != len(c.want) {
		t.Errorf("%d messages, want %d: %q", len(got), len(c.want), got)
		return
	}
	for _, w := range c.want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("no message says %q: %q", w, got)
		}
	}
	for _, m := range got {
		if !strings.HasPrefix(m, "lambdalock: function Test/Fn") {
			t.Errorf("a message does not name the function: %q", m)
		}
	}
}

func TestReplication(t *testing.T) {
	named := &infra.LockTableProps{TableName: s("orders-locks")}
	replica := func(table func(infra.LockTable) *string) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(k awscdk.Stack, _ awslambda.Function, l infra.LockTable) {
			awscdk.NewCustomResource(k, s("Replica"), &awscdk.CustomResourceProps{
				ResourceType: s("Custom::DynamoDBReplica"), ServiceToken: s("arn:aws:lambda:eu-west-1:111111111111:function:replicas"),
				Properties: &object{"TableName": *table(l), "Region": "us-east-1"},
			})
		}
	}
	global := func(name string, consistency *string, regions ...string) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(k awscdk.Stack, _ awslambda.Function, _ infra.LockTable) {
			var replicas []any
			for _, r := range regions {
				replicas = append(replicas, &awsdynamodb.CfnGlobalTable_ReplicaSpecificationProperty{Region: s(r)})
			}
			awsdynamodb.NewCfnGlobalTable(k, s("Global"), &awsdynamodb.CfnGlobalTableProps{
				TableName: s(name), MultiRegionConsistency: consistency, Replicas: replicas,
				KeySchema:            []any{&awsdynamodb.CfnGlobalTable_KeySchemaProperty{AttributeName: s("lock"), KeyType: s("HASH")}},
				AttributeDefinitions: []any{&awsdynamodb.CfnGlobalTable_AttributeDefinitionProperty{AttributeName: s("lock"), AttributeType: s("S")}},
			})
		}
	}
	const says = "locks in a table that Test/"
	for name, c := range map[string]checkCase{
		"replica":           {build: replica(func(l infra.LockTable) *string { return l.Table().TableName() }), want: []string{says + "Replica/Default replicates asynchronously"}},
		"replica by name":   {table: named, build: replica(func(infra.LockTable) *string { return s("orders-locks") }), want: []string{says + "Replica/Default"}},
		"replica of others": {table: named, build: replica(func(infra.LockTable) *string { return s("orders") })},
		"global":            {table: named, build: global("orders-locks", nil, "eu-west-1", "us-east-1"), want: []string{says + "Global replicates asynchronously"}},
		"global, eventual":  {table: named, build: global("orders-locks", s("EVENTUAL"), "eu-west-1", "us-east-1"), want: []string{says + "Global"}},
		"global, strong":    {table: named, build: global("orders-locks", s("STRONG"), "eu-west-1", "us-east-1", "us-east-2")},
		"global, others":    {table: named, build: global("orders", nil, "eu-west-1", "us-east-1")},
		"global, no name":   {build: global("orders-locks", nil, "eu-west-1", "us-east-1")},
		"one Region":        {table: named, build: global("orders-locks", nil, "eu-west-1")},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "error") })
	}
	// Such a table is a lock, and lacks something.
	checkCase{
		table: named, build: global("orders-locks", s("STRONG"), "eu-west-1", "us-east-1", "us-east-2"),
		want: []string{"it locks in the global table Test/Global with MultiRegionConsistency STRONG: such a table has no TTL"},
	}.run(t, "warning")
	checkCase{table: named, build: global("orders", s("STRONG"), "eu-west-1", "us-east-1", "us-east-2")}.run(t, "warning")
}

func TestLeasesNotCounted(t *testing.T) {
	alarms := func(_ awscdk.Stack, _ awslambda.Function, l infra.LockTable) { l.Alarms(nil) }
	checkCase{build: alarms, want: []string{"its log group is not managed by the CDK"}}.run(t, "warning")
	checkCase{}.run(t, "warning") // nobody waits for the metric

	stack := newStack()
	l := infra.NewLockTable(stack, s("Locks"), nil)
	fn := newFunction(stack, "Fn", &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(stack, s("Logs"), nil)})
	l.Connect(fn, nil)
	l.Alarms(nil)
	if got := notes(fn, "warning"); len(got) != 0 {
		t.Errorf("a function whose leases are counted: %q", got)
	}
}
