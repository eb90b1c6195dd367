package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

func TestConnectedFunctionHasOneAction(t *testing.T) {
	stack := newStack()
	fn := newFunction(stack, "Fn", nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)

	policy := only(t, stack, "AWS::IAM::Policy") // no other policy, no other statement
	equal(t, "policy", policy["PolicyDocument"].(object)["Statement"], `[{
		"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": {"Fn::GetAtt": ["LocksTable84FB9352", "Arn"]}}]`)
	// No namespace: the permission is for the whole table.
	equal(t, "environment", only(t, stack, "AWS::Lambda::Function")["Environment"], `{"Variables": {"LOCK_TABLE_NAME": {"Ref": "LocksTable84FB9352"}}}`)
	for _, kind := range []string{"AWS::Logs::MetricFilter", "AWS::Logs::LogGroup", "Custom::LogRetention"} {
		assertions.Template_FromStack(stack, nil).ResourceCountIs(s(kind), jsii.Number(0))
	}
}

func TestPermissionIsLimitedToTheNamespace(t *testing.T) {
	parameter := awscdk.NewCfnParameter(newStack(), s("Namespace"), nil)
	for name, c := range map[string]struct {
		functionName, namespace *string
		want                    string
		variable                string // LOCK_NAMESPACE, which the library escapes itself
	}{
		"neither":                   {nil, nil, ``, ``},
		"function name":             {s("orders-handler"), nil, `orders-handler/*`, `orders-handler`},
		"namespace":                 {nil, s("orders"), `orders/*`, `orders`},
		"namespace before function": {s("orders-handler"), s("orders"), `orders/*`, `orders`},
		"escaped":                   {nil, s(`ö/${aws:username}*?`), `%C3%B6%2F$%7Baws:username%7D%2A%3F/*`, `ö/${aws:username}*?`},
		"empty":                     {nil, s(""), `/*`, ``},
		"token":                     {s("orders-handler"), parameter.ValueAsString(), ``, ``},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			fn := newFunction(stack, "Fn", &awslambda.FunctionProps{FunctionName: c.functionName})
			infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, &infra.ConnectOptions{Namespace: c.namespace})
			want := `null`
			variable, _ := at(only(t, stack, "AWS::Lambda::Function"), "Environment", "Variables", "LOCK_NAMESPACE").(string)
			if variable != c.variable {
				t.Errorf("LOCK_NAMESPACE is %q, want %q", variable, c.variable)
			}
			if c.want != "" {
				want = `{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": "` + c.want + `"}, "Null": {"dynamodb:LeadingKeys": "false"}}`
			}
			equal(t, "condition", statements(t, stack, "dynamodb:")[0]["Condition"], want)
		})
	}
}

func TestConnectAcrossStacks(t *testing.T) {
	app := awscdk.NewApp(nil)
	data := awscdk.NewStack(app, s("Data"), nil)
	code := awscdk.NewStack(app, s("Code"), nil)
	fn := newFunction(code, "Fn", &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(code, s("Logs"), nil)})
	infra.NewLockTable(data, s("Locks"), nil).Connect(fn, nil)
	app.Synth(nil) // panics if the stacks depend on each other
	if len(resources(t, code, "AWS::Logs::MetricFilter")) != 1 || len(statements(t, code, "dynamodb:UpdateItem")) != 1 {
		t.Error("filter and policy do not belong to the stack of the function")
	}
}

func TestConnectOnce(t *testing.T) {
	stack := newStack()
	fn := newFunction(stack, "Fn", nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	other := infra.NewLockTable(stack, s("Other"), nil)
	if m := panics(t, func() { other.Connect(fn, nil) }); !strings.Contains(m, "function Test/Fn is connected already") {
		t.Error(m)
	}
}

func TestGrants(t *testing.T) {
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
		"Connect":      {func(l infra.LockTable, k awscdk.Stack) { l.Connect(newFunction(k, "Fn", nil), nil) }, write},
		"GrantLock":    {func(l infra.LockTable, k awscdk.Stack) { l.GrantLock(awsiam.NewUser(k, s("User"), nil)) }, write},
		"GrantInspect": {func(l infra.LockTable, k awscdk.Stack) { l.GrantInspect(awsiam.NewUser(k, s("User"), nil)) }, `["kms:Decrypt", "kms:DescribeKey"]`},
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

func TestLostLeasesAreCounted(t *testing.T) {
	managed := func() awscdk.Stack {
		return awscdk.NewStack(awscdk.NewApp(&awscdk.AppProps{Context: &object{"@aws-cdk/aws-lambda:useCdkManagedLogGroup": true}}), s("Test"), nil)
	}
	for name, c := range map[string]struct {
		stack   awscdk.Stack
		connect func(infra.LockTable, awscdk.Stack)
		group   string // its logical id begins so
	}{
		"property LogGroup": {newStack(), func(l infra.LockTable, k awscdk.Stack) {
			l.Connect(newFunction(k, "Fn", &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(k, s("Logs"), nil)}), nil)
		}, "Logs"},
		"feature flag": {managed(), func(l infra.LockTable, k awscdk.Stack) {
			l.Connect(newFunction(k, "Fn", nil), nil)
		}, "FnLogGroup"},
		"given": {newStack(), func(l infra.LockTable, k awscdk.Stack) {
			l.Connect(newFunction(k, "Fn", nil), &infra.ConnectOptions{LogGroup: awslogs.NewLogGroup(k, s("Given"), nil)})
		}, "Given"},
	} {
		t.Run(name, func(t *testing.T) {
			c.connect(infra.NewLockTable(c.stack, s("Locks"), nil), c.stack)
			p := only(t, c.stack, "AWS::Logs::MetricFilter")
			equal(t, "pattern", p["FilterPattern"], `"\"lambdalock: lost\""`)
			equal(t, "metric", p["MetricTransformations"], `[{"MetricName": "LeaseLost", "MetricNamespace": "lambdalock", "MetricValue": "1"}]`)
			if group := encoded(p["LogGroupName"]); !strings.HasPrefix(group, `{"Ref":"`+c.group) {
				t.Errorf("the filter is on %s", group)
			}
			if n := len(resources(t, c.stack, "AWS::Logs::LogGroup")); n != 1 {
				t.Errorf("%d log groups, want 1", n)
			}
		})
	}
}

// TestFormatOfLogsIsNoLogGroup: it is another member of the same property.
func TestFormatOfLogsIsNoLogGroup(t *testing.T) {
	stack := newStack()
	fn := newFunction(stack, "Fn", &awslambda.FunctionProps{LoggingFormat: awslambda.LoggingFormat_JSON})
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	if n := len(resources(t, stack, "Custom::LogRetention")) + len(resources(t, stack, "AWS::Logs::MetricFilter")); n != 0 {
		t.Errorf("%d resources for a log group that the CDK does not manage", n)
	}
}

// TestRoleThatTakesNoPermission: the CDK takes a permission for it, and drops it.
func TestRoleThatTakesNoPermission(t *testing.T) {
	const arn = "arn:aws:iam::111111111111:role/handler"
	made := func(k awscdk.Stack) awsiam.Role {
		return awsiam.NewRole(k, s("Role"), &awsiam.RoleProps{AssumedBy: awsiam.NewServicePrincipal(s("lambda.amazonaws.com"), nil)})
	}
	for name, c := range map[string]struct {
		role   func(awscdk.Stack) awsiam.IRole
		warned bool
	}{
		"of its own":         {func(awscdk.Stack) awsiam.IRole { return nil }, false},
		"made":               {func(k awscdk.Stack) awsiam.IRole { return made(k) }, false},
		"made, not to touch": {func(k awscdk.Stack) awsiam.IRole { return made(k).WithoutPolicyUpdates(nil) }, true},
		"imported":           {func(k awscdk.Stack) awsiam.IRole { return awsiam.Role_FromRoleArn(k, s("Role"), s(arn), nil) }, false},
		"imported by name":   {func(k awscdk.Stack) awsiam.IRole { return awsiam.Role_FromRoleName(k, s("Role"), s("handler"), nil) }, false},
		"immutable": {func(k awscdk.Stack) awsiam.IRole {
			return awsiam.Role_FromRoleArn(k, s("Role"), s(arn), &awsiam.FromRoleArnOptions{Mutable: jsii.Bool(false)})
		}, true},
		"immutable, grants to resources": {func(k awscdk.Stack) awsiam.IRole {
			return awsiam.Role_FromRoleArn(k, s("Role"), s(arn), &awsiam.FromRoleArnOptions{Mutable: jsii.Bool(false), AddGrantsToResources: jsii.Bool(true)})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			fn := newFunction(stack, "Fn", &awslambda.FunctionProps{Role: c.role(stack)})
			infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
			got := notes(fn, "warning")
			if allowed := len(statements(t, stack, "dynamodb:UpdateItem")) == 1; allowed == c.warned {
				t.Errorf("a policy allows it: %v", allowed)
			}
			if c.warned != (len(got) == 1) || c.warned && !strings.Contains(got[0], "its role takes no permissions from the CDK") {
				t.Errorf("%q", got)
			}
		})
	}
}
