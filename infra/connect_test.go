package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

func TestConnectedFunctionHasOneAction(t *testing.T) { // F40
	stack := newStack()
	fn := newFunction(stack, "Fn", nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)

	policy := only(t, stack, "AWS::IAM::Policy") // no other policy, no other statement
	equal(t, "policy", policy["PolicyDocument"].(object)["Statement"], `[{
		"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": {"Fn::GetAtt": ["LocksTable84FB9352", "Arn"]},
		"Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": "Test-Fn9270CBC0/*"}, "Null": {"dynamodb:LeadingKeys": "false"}}}]`)
	equal(t, "environment", only(t, stack, "AWS::Lambda::Function")["Environment"], `{"Variables": {
		"LOCK_TABLE_NAME": {"Ref": "LocksTable84FB9352"}, "LOCK_NAMESPACE": "Test-Fn9270CBC0"}}`)
	for _, kind := range []string{"AWS::Logs::MetricFilter", "AWS::Logs::LogGroup", "Custom::LogRetention"} {
		assertions.Template_FromStack(stack, nil).ResourceCountIs(s(kind), jsii.Number(0))
	}
}

func TestPermissionIsLimitedToTheNamespace(t *testing.T) { // F40
	token := func(stack awscdk.Stack) *string {
		return awscdk.NewCfnParameter(stack, s("Parameter"), nil).ValueAsString()
	}
	text := func(text string) func(awscdk.Stack) *string {
		return func(awscdk.Stack) *string { return &text }
	}
	for name, c := range map[string]struct {
		functionName, namespace func(awscdk.Stack) *string
		want                    string
		variable                string // LOCK_NAMESPACE, which the library escapes itself
	}{
		"neither":                   {nil, nil, `Test-Fn9270CBC0/*`, `Test-Fn9270CBC0`},
		"function name":             {text("orders-handler"), nil, `orders-handler/*`, `orders-handler`},
		"namespace":                 {nil, text("orders"), `orders/*`, `orders`},
		"namespace before function": {text("orders-handler"), text("orders"), `orders/*`, `orders`},
		"escaped":                   {nil, text(`ö/${aws:username}*?`), `%C3%B6%2F$%7Baws:username%7D%2A%3F/*`, `ö/${aws:username}*?`},
		"namespace is a token":      {text("orders-handler"), token, ``, `{"Ref":"Parameter"}`},
		"name is a token":           {token, nil, `Test-Fn9270CBC0/*`, `Test-Fn9270CBC0`},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			props, options := &awslambda.FunctionProps{}, &infra.ConnectOptions{}
			if c.functionName != nil {
				props.FunctionName = c.functionName(stack)
			}
			if c.namespace != nil {
				options.Namespace = c.namespace(stack)
			}
			fn := newFunction(stack, "Fn", props)
			if !*infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, options).Success() {
				t.Error("Connect has no effect")
			}
			want := `null`
			value := at(only(t, stack, "AWS::Lambda::Function"), "Environment", "Variables", "LOCK_NAMESPACE")
			variable, ok := value.(string)
			if !ok {
				variable = encoded(value)
			}
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

// TestEmptyNamespace: middleware.WithLock takes an empty LOCK_NAMESPACE for
// none, so the function would lock where it has no permission.
func TestEmptyNamespace(t *testing.T) {
	stack := newStack()
	fn := newFunction(stack, "Fn", nil)
	locks := infra.NewLockTable(stack, s("Locks"), nil)
	if m := panicOf(t, func() { locks.Connect(fn, &infra.ConnectOptions{Namespace: s("")}) }); !strings.Contains(m, "function Test/Fn got an empty ConnectOptions.Namespace") {
		t.Error(m)
	}
}

func TestConnectAcrossStacks(t *testing.T) {
	app := awscdk.NewApp(nil)
	data := awscdk.NewStack(app, s("Data"), nil)
	code := awscdk.NewStack(app, s("Code"), nil)
	fn := newFunction(code, "Fn", &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(code, s("Logs"), nil)})
	infra.NewLockTable(data, s("Locks"), nil).Connect(fn, nil)
	app.Synth(nil) // panics if the stacks depend on each other
	if len(resources(t, code, "AWS::Logs::MetricFilter")) != 6 || len(statements(t, code, "dynamodb:UpdateItem")) != 1 {
		t.Error("filter and policy do not belong to the stack of the function")
	}
}

func TestConnectOnce(t *testing.T) {
	stack := newStack()
	fn := newFunction(stack, "Fn", nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
	other := infra.NewLockTable(stack, s("Other"), nil)
	if m := panicOf(t, func() { other.Connect(fn, nil) }); !strings.Contains(m, "function Test/Fn is already connected") {
		t.Error(m)
	}
}

// TestRoleThatTakesNoPermission: the CDK accepts a permission for such a role
// and drops it.
func TestRoleThatTakesNoPermission(t *testing.T) {
	const arn = "arn:aws:iam::111111111111:role/handler"
	made := func(stack awscdk.Stack) awsiam.Role {
		return awsiam.NewRole(stack, s("Role"), &awsiam.RoleProps{AssumedBy: awsiam.NewServicePrincipal(s("lambda.amazonaws.com"), nil)})
	}
	for name, c := range map[string]struct {
		role   func(awscdk.Stack) awsiam.IRole
		warned bool
	}{
		"default":           {func(awscdk.Stack) awsiam.IRole { return nil }, false},
		"made":              {func(stack awscdk.Stack) awsiam.IRole { return made(stack) }, false},
		"made, not updated": {func(stack awscdk.Stack) awsiam.IRole { return made(stack).WithoutPolicyUpdates(nil) }, true},
		"imported":          {func(stack awscdk.Stack) awsiam.IRole { return awsiam.Role_FromRoleArn(stack, s("Role"), s(arn), nil) }, false},
		"imported by name": {func(stack awscdk.Stack) awsiam.IRole {
			return awsiam.Role_FromRoleName(stack, s("Role"), s("handler"), nil)
		}, false},
		"immutable": {func(stack awscdk.Stack) awsiam.IRole {
			return awsiam.Role_FromRoleArn(stack, s("Role"), s(arn), &awsiam.FromRoleArnOptions{Mutable: jsii.Bool(false)})
		}, true},
		"immutable, grants to resources": {func(stack awscdk.Stack) awsiam.IRole {
			return awsiam.Role_FromRoleArn(stack, s("Role"), s(arn), &awsiam.FromRoleArnOptions{Mutable: jsii.Bool(false), AddGrantsToResources: jsii.Bool(true)})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			fn := newFunction(stack, "Fn", &awslambda.FunctionProps{Role: c.role(stack)})
			infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil)
			got := synthesisedMessages(fn, "warning")
			if allowed := len(statements(t, stack, "dynamodb:UpdateItem")) == 1; allowed == c.warned {
				t.Errorf("a policy allows it: %v", allowed)
			}
			if c.warned != (len(got) == 1) || c.warned && !strings.Contains(got[0], "its role accepts no permissions from the CDK") {
				t.Errorf("%q", got)
			}
		})
	}
}
