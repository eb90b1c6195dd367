package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"

	"github.com/lambdalock/lambdalock/infra"
)

func TestReplication(t *testing.T) {
	named := &infra.LockTableProps{TableName: s("orders-locks")}
	replica := func(table func(infra.LockTable) *string) buildFunc {
		return func(stack awscdk.Stack, _ awslambda.Function, locks infra.LockTable) {
			awscdk.NewCustomResource(stack, s("Replica"), &awscdk.CustomResourceProps{
				ResourceType: s("Custom::DynamoDBReplica"), ServiceToken: s("arn:aws:lambda:eu-west-1:111111111111:function:replicas"),
				Properties: &object{"TableName": *table(locks), "Region": "us-east-1"},
			})
		}
	}
	global := func(name string, consistency *string, regions ...string) buildFunc {
		return func(stack awscdk.Stack, _ awslambda.Function, _ infra.LockTable) {
			var replicas []any
			for _, r := range regions {
				replicas = append(replicas, &awsdynamodb.CfnGlobalTable_ReplicaSpecificationProperty{Region: s(r)})
			}
			awsdynamodb.NewCfnGlobalTable(stack, s("Global"), &awsdynamodb.CfnGlobalTableProps{
				TableName: s(name), MultiRegionConsistency: consistency, Replicas: replicas,
				KeySchema:            []any{&awsdynamodb.CfnGlobalTable_KeySchemaProperty{AttributeName: s("lock"), KeyType: s("HASH")}},
				AttributeDefinitions: []any{&awsdynamodb.CfnGlobalTable_AttributeDefinitionProperty{AttributeName: s("lock"), AttributeType: s("S")}},
			})
		}
	}
	const says = "locks in a table that Test/"
	for name, c := range map[string]checkCase{
		"replica":           {build: replica(func(locks infra.LockTable) *string { return locks.Table().TableName() }), want: []string{says + "Replica/Default replicates asynchronously"}},
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
	for name, c := range map[string]checkCase{
		"global, strong, warning": {
			table: named, build: global("orders-locks", s("STRONG"), "eu-west-1", "us-east-1", "us-east-2"),
			want: []string{"it locks in the global table Test/Global with MultiRegionConsistency STRONG: such a table has no TTL"},
		},
		"global, strong, others, no warning": {table: named, build: global("orders", s("STRONG"), "eu-west-1", "us-east-1", "us-east-2")},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

// TestReplicationOfAnImportedTable: a table that the same app makes is also
// recognised if the lock table has it by a reference.
func TestReplicationOfAnImportedTable(t *testing.T) {
	lock := &awsdynamodb.Attribute{Name: s("lock"), Type: awsdynamodb.AttributeType_STRING}
	global := func(stack awscdk.Stack) awsdynamodb.TableV2 {
		return awsdynamodb.NewTableV2(stack, s("Global"), &awsdynamodb.TablePropsV2{
			PartitionKey: lock, Replicas: &[]*awsdynamodb.ReplicaTableProps{{Region: s("us-east-1")}},
		})
	}
	for name, c := range map[string]struct {
		imported func(data, stack awscdk.Stack) infra.ILockTable
		want     string // empty: no error
	}{
		"by name": {func(data, stack awscdk.Stack) infra.ILockTable {
			return infra.LockTable_FromTableName(stack, s("Locks"), global(data).TableName())
		}, "locks in a table that Data/Global/Resource replicates asynchronously"},
		"by ARN": {func(data, stack awscdk.Stack) infra.ILockTable {
			return infra.LockTable_FromTableArn(stack, s("Locks"), global(data).TableArn())
		}, "locks in a table that Data/Global/Resource replicates asynchronously"},
		"a custom resource": {func(data, stack awscdk.Stack) infra.ILockTable {
			return infra.LockTable_FromTableName(stack, s("Locks"), awsdynamodb.NewTable(data, s("Table"), &awsdynamodb.TableProps{
				PartitionKey: lock, ReplicationRegions: &[]*string{s("us-east-1")},
			}).TableName())
		}, "locks in a table that Data/Table/Replicaus-east-1/Default replicates asynchronously"},
		"of others": {func(data, stack awscdk.Stack) infra.ILockTable {
			global(data)
			return infra.LockTable_FromTableName(stack, s("Locks"), awscdk.NewCfnParameter(stack, s("Name"), nil).ValueAsString())
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			app := awscdk.NewApp(nil)
			data := newStackIn(app, "Data", "111111111111", "eu-west-1")
			stack := newStackIn(app, "Test", "111111111111", "eu-west-1")
			fn := newFunction(stack, "Fn", nil)
			c.imported(data, stack).Connect(fn, nil)
			got := strings.Join(synthesisedMessages(fn, "error"), "\n")
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
