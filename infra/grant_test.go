package infra_test

import (
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"

	"github.com/lambdalock/lambdalock/infra"
)

func TestGrants(t *testing.T) { // F40
	stack := newStack()
	table := infra.NewLockTable(stack, s("Locks"), nil)
	user := awsiam.NewUser(stack, s("User"), nil)
	if !*table.GrantLock(user).Success() {
		t.Error("GrantLock has no effect")
	}
	equal(t, "GrantLock", statements(t, stack, "dynamodb:"), `[{
		"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": {"Fn::GetAtt": ["LocksTable84FB9352", "Arn"]}}]`)

	stack = newStack()
	table = infra.NewLockTable(stack, s("Locks"), nil)
	table.GrantInspect(awsiam.NewUser(stack, s("User"), nil))
	equal(t, "GrantInspect", statements(t, stack, "dynamodb:"), `[{
		"Effect": "Allow", "Action": ["dynamodb:GetItem", "dynamodb:Scan", "dynamodb:DescribeTable"], "Resource": {"Fn::GetAtt": ["LocksTable84FB9352", "Arn"]}}]`)
}

func TestGrantsOfTheKey(t *testing.T) {
	const write = `["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"]`
	for name, c := range map[string]struct {
		grant func(infra.LockTable, awscdk.Stack)
		want  string
	}{
		"Connect": {func(locks infra.LockTable, stack awscdk.Stack) { locks.Connect(newFunction(stack, "Fn", nil), nil) }, write},
		"GrantLock": {func(locks infra.LockTable, stack awscdk.Stack) {
			locks.GrantLock(awsiam.NewUser(stack, s("User"), nil))
		}, write},
		"GrantInspect": {func(locks infra.LockTable, stack awscdk.Stack) {
			locks.GrantInspect(awsiam.NewUser(stack, s("User"), nil))
		}, `["kms:Decrypt", "kms:DescribeKey"]`},
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
