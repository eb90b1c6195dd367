package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

func TestTableFitsTheStore(t *testing.T) {
	stack := newStack()
	table := infra.NewLockTable(stack, s("Locks"), nil)
	if *table.Table().Node().Path() != "Test/Locks/Table" {
		t.Errorf("the table is at %s", *table.Table().Node().Path())
	}
	// All properties: a stream, an index or a sort key would not fit, or cost.
	equal(t, "table", only(t, stack, "AWS::DynamoDB::Table"), `{
		"AttributeDefinitions": [{"AttributeName": "lock", "AttributeType": "S"}],
		"KeySchema": [{"AttributeName": "lock", "KeyType": "HASH"}],
		"TimeToLiveSpecification": {"AttributeName": "deleteAfter", "Enabled": true},
		"BillingMode": "PAY_PER_REQUEST", "DeletionProtectionEnabled": true}`)
	assertions.Template_FromStack(stack, nil).HasResource(s("AWS::DynamoDB::Table"), object{"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"})
	assertions.Template_FromStack(stack, nil).ResourceCountIs(s("AWS::DynamoDB::GlobalTable"), jsii.Number(0))
}

func TestTableProps(t *testing.T) {
	stack := newStack()
	infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{
		TableName:            s("orders-locks"),
		EncryptionKey:        awskms.NewKey(stack, s("Key"), nil),
		PointInTimeRecovery:  jsii.Bool(true),
		DeletionProtection:   jsii.Bool(true),
		MaxWriteRequestUnits: jsii.Number(500),
		WarmThroughput:       &awsdynamodb.WarmThroughput{WriteUnitsPerSecond: jsii.Number(20000)},
		RemovalPolicy:        awscdk.RemovalPolicy_DESTROY,
	})
	p := only(t, stack, "AWS::DynamoDB::Table")
	equal(t, "TableName", p["TableName"], `"orders-locks"`)
	equal(t, "SSESpecification", p["SSESpecification"], `{"SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": {"Fn::GetAtt": ["Key961B73FD", "Arn"]}}`)
	equal(t, "PointInTimeRecoverySpecification", p["PointInTimeRecoverySpecification"], `{"PointInTimeRecoveryEnabled": true}`)
	equal(t, "DeletionProtectionEnabled", p["DeletionProtectionEnabled"], `true`)
	equal(t, "OnDemandThroughput", p["OnDemandThroughput"], `{"MaxWriteRequestUnits": 500}`)
	equal(t, "WarmThroughput", p["WarmThroughput"], `{"WriteUnitsPerSecond": 20000}`)
	assertions.Template_FromStack(stack, nil).HasResource(s("AWS::DynamoDB::Table"), object{"DeletionPolicy": "Delete"})
}

// TestDeletionProtection: a table that stays in the account is protected from
// the console too.
func TestDeletionProtection(t *testing.T) {
	for name, c := range map[string]struct {
		props infra.LockTableProps
		want  string
	}{
		"default":                {infra.LockTableProps{}, `true`},
		"destroy":                {infra.LockTableProps{RemovalPolicy: awscdk.RemovalPolicy_DESTROY}, `false`},
		"not protected":          {infra.LockTableProps{DeletionProtection: jsii.Bool(false)}, `false`},
		"destroy, but protected": {infra.LockTableProps{DeletionProtection: jsii.Bool(true), RemovalPolicy: awscdk.RemovalPolicy_DESTROY}, `true`},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			infra.NewLockTable(stack, s("Locks"), &c.props)
			equal(t, "DeletionProtectionEnabled", only(t, stack, "AWS::DynamoDB::Table")["DeletionProtectionEnabled"], c.want)
		})
	}
}

func TestOutput(t *testing.T) {
	stack := newStack()
	infra.NewLockTable(stack, s("Locks"), nil)
	for _, o := range *assertions.Template_FromStack(stack, nil).FindOutputs(s("*"), nil) {
		equal(t, "value", (*o)["Value"], `{"Ref": "LocksTable84FB9352"}`)
		return
	}
	t.Error("no output")
}

// TestSynthesisIsRepeatable: the same app has the same templates, also if it is
// synthesised twice.
func TestSynthesisIsRepeatable(t *testing.T) {
	var templates []string
	for range 2 {
		app := awscdk.NewApp(nil)
		stack := awscdk.NewStack(app, s("Test"), nil)
		locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{EMF: jsii.Bool(true)})
		locks.AddAlarms(nil)
		locks.AddDashboard(nil)
		for _, id := range []string{"C", "A", "B"} {
			locks.Connect(newFunction(stack, id, nil), nil)
		}
		for range 2 {
			templates = append(templates, encoded(app.Synth(&awscdk.StageSynthesisOptions{Force: jsii.Bool(true)}).GetStackByName(s("Test")).Template()))
		}
	}
	for i, template := range templates[1:] {
		if template != templates[0] {
			t.Errorf("template %d differs from the first:\n%s\n%s", i+1, template, templates[0])
		}
	}
}

// TestRemovalPolicy: without the table, completed events run again, so a table
// that is deleted with its stack is worth a warning, also if an aspect says so.
func TestRemovalPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		policy       awscdk.RemovalPolicy
		later        awscdk.RemovalPolicy
		acknowledged bool
		warned       bool
	}{
		"default":               {},
		"retain":                {policy: awscdk.RemovalPolicy_RETAIN},
		"destroy":               {policy: awscdk.RemovalPolicy_DESTROY, warned: true},
		"destroy, acknowledged": {policy: awscdk.RemovalPolicy_DESTROY, acknowledged: true},
		"later":                 {later: awscdk.RemovalPolicy_DESTROY, warned: true},
		"no more":               {policy: awscdk.RemovalPolicy_DESTROY, later: awscdk.RemovalPolicy_RETAIN},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{RemovalPolicy: c.policy})
			if c.later != "" {
				locks.Table().ApplyRemovalPolicy(c.later)
			}
			if c.acknowledged {
				awscdk.Annotations_Of(locks).AcknowledgeWarning(s(infra.WarnRemovalPolicy), nil)
			}
			assertions.Annotations_FromStack(stack)
			got := annotations(locks.Table().Node(), "warning")
			if c.warned != (len(got) == 1) || c.warned && !strings.HasPrefix(got[0], "lambdalock: lock table Test/Locks is deleted") {
				t.Errorf("%q", got)
			}
		})
	}
}
