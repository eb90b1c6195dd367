package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"

	"github.com/lambdalock/lambdalock/infra"
)

func TestGrants(t *testing.T) { // F40
	const limited = `, "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": "orders/*"}, "Null": {"dynamodb:LeadingKeys": "false"}}`
	for name, c := range map[string]struct {
		grant     func(infra.ILockTable, awsiam.IGrantable) awsiam.Grant
		actions   string
		condition string
	}{
		"GrantLock": {func(locks infra.ILockTable, user awsiam.IGrantable) awsiam.Grant { return locks.GrantLock(user, nil) }, `"dynamodb:UpdateItem"`, ""},
		"GrantLock in a namespace": {func(locks infra.ILockTable, user awsiam.IGrantable) awsiam.Grant {
			return locks.GrantLock(user, s("orders"))
		}, `"dynamodb:UpdateItem"`, limited},
		"GrantLockInBatches": {func(locks infra.ILockTable, user awsiam.IGrantable) awsiam.Grant {
			return locks.GrantLockInBatches(user, s("orders"))
		}, `["dynamodb:UpdateItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate"]`, limited},
		"GrantInspect": {infra.ILockTable.GrantInspect, `["dynamodb:GetItem", "dynamodb:Scan", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"]`, ""},
		"GrantOperate": {infra.ILockTable.GrantOperate, `["dynamodb:GetItem", "dynamodb:Scan", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:UpdateItem"]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			if !*c.grant(infra.NewLockTable(stack, s("Locks"), nil), awsiam.NewUser(stack, s("User"), nil)).Success() {
				t.Error("no effect")
			}
			equal(t, "statements", statements(t, stack, "dynamodb:"), `[{
				"Effect": "Allow", "Action": `+c.actions+`, "Resource": {"Fn::GetAtt": ["LocksTable84FB9352", "Arn"]}`+c.condition+`}]`)
		})
	}
}

// TestGrantLockOfAToken: a namespace that cannot be escaped must not become a
// permission for all.
func TestGrantLockOfAToken(t *testing.T) {
	stack := newStack()
	locks := infra.NewLockTable(stack, s("Locks"), nil)
	namespace := awscdk.NewCfnParameter(stack, s("Namespace"), nil).ValueAsString()
	user := awsiam.NewUser(stack, s("User"), nil)
	if m := panicOf(t, func() { locks.GrantLock(user, namespace) }); !strings.Contains(m, "GrantLock got a token") {
		t.Error(m)
	}
	if m := panicOf(t, func() { locks.GrantLockInBatches(user, namespace) }); !strings.Contains(m, "GrantLockInBatches got a token") {
		t.Error(m)
	}
}

func TestGrantsOfTheKey(t *testing.T) {
	const write = `["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"]`
	for name, c := range map[string]struct {
		grant func(infra.LockTable, awscdk.Stack)
		want  string
	}{
		"Connect": {func(locks infra.LockTable, stack awscdk.Stack) { locks.Connect(newFunction(stack, "Fn", nil), nil) }, write},
		"GrantLock": {func(locks infra.LockTable, stack awscdk.Stack) {
			locks.GrantLock(awsiam.NewUser(stack, s("User"), nil), nil)
		}, write},
		"GrantInspect": {func(locks infra.LockTable, stack awscdk.Stack) {
			locks.GrantInspect(awsiam.NewUser(stack, s("User"), nil))
		}, `["kms:Decrypt", "kms:DescribeKey"]`},
		"GrantLockInBatches": {func(locks infra.LockTable, stack awscdk.Stack) {
			locks.GrantLockInBatches(awsiam.NewUser(stack, s("User"), nil), nil)
		}, write},
		"GrantOperate": {func(locks infra.LockTable, stack awscdk.Stack) {
			locks.GrantOperate(awsiam.NewUser(stack, s("User"), nil))
		}, write},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			c.grant(infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{EncryptionKey: awskms.NewKey(stack, s("Key"), nil)}), stack)
			key := statements(t, stack, "kms:")
			if len(key) != 1 {
				t.Fatalf("%d statements for the key, want 1", len(key))
			}
			equal(t, "actions", key[0]["Action"], c.want)
			equal(t, "resource", key[0]["Resource"], `{"Fn::GetAtt": ["Key961B73FD", "Arn"]}`)
		})
	}
}
