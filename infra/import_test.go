package infra_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"

	"github.com/lambdalock/lambdalock/infra"
)

// TestKindsOfFunctions: what stands for a function that the app makes connects
// that function.
func TestKindsOfFunctions(t *testing.T) {
	singleton := func(stack awscdk.Stack, id string) awslambda.IFunction {
		return awslambda.NewSingletonFunction(stack, s(id), &awslambda.SingletonFunctionProps{
			Uuid: s("84c0de93-353f-4217-9b0b-45b6c993251a"), Runtime: awslambda.Runtime_NODEJS_LATEST(), Handler: s("index.handler"), Code: awslambda.Code_FromInline(s("//")),
		})
	}
	for name, made := range map[string]func(stack awscdk.Stack) awslambda.IFunction{
		"function": func(stack awscdk.Stack) awslambda.IFunction { return newFunction(stack, "Fn", nil) },
		"alias": func(stack awscdk.Stack) awslambda.IFunction {
			return newFunction(stack, "Fn", nil).AddAlias(s("live"), nil)
		},
		"version": func(stack awscdk.Stack) awslambda.IFunction { return newFunction(stack, "Fn", nil).CurrentVersion() },
		"alias that only its attributes name": func(stack awscdk.Stack) awslambda.IFunction {
			return awslambda.Alias_FromAliasAttributes(stack, s("Live"), &awslambda.AliasAttributes{
				AliasName: s("live"), AliasVersion: newFunction(stack, "Fn", nil).CurrentVersion(),
			})
		},
		"Python": func(stack awscdk.Stack) awslambda.IFunction {
			return awslambda.NewFunction(stack, s("Fn"), &awslambda.FunctionProps{
				Runtime: awslambda.Runtime_PYTHON_3_13(), Handler: s("index.handler"), Code: awslambda.Code_FromInline(s("#")),
			})
		},
		"singleton":        func(stack awscdk.Stack) awslambda.IFunction { return singleton(stack, "Fn") },
		"second singleton": func(stack awscdk.Stack) awslambda.IFunction { singleton(stack, "First"); return singleton(stack, "Fn") },
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStack()
			fn := made(stack)
			locks := infra.NewLockTable(stack, s("Locks"), nil)
			if !*locks.Connect(fn, nil).Success() {
				t.Error("Connect has no effect")
			}
			variables, _ := at(only(t, stack, "AWS::Lambda::Function"), "Environment", "Variables").(object)
			namespace, _ := variables["LOCK_NAMESPACE"].(string)
			if variables["LOCK_TABLE_NAME"] == nil || !strings.HasPrefix(namespace, "Test-") {
				t.Errorf("variables are %v", variables)
			}
			if got := encoded(statements(t, stack, "dynamodb:UpdateItem")); !strings.Contains(got, namespace+"/*") {
				t.Errorf("permissions are %s", got)
			}
			if m := panicOf(t, func() { locks.Connect(fn, nil) }); !strings.Contains(m, "is already connected") {
				t.Error(m)
			}
		})
	}
}

// TestChecksSeeTheFunctionOfAnAlias: the checks find what invokes the function.
func TestChecksSeeTheFunctionOfAnAlias(t *testing.T) {
	stack := newStack()
	fn := newFunction(stack, "Fn", nil)
	alias := fn.AddAlias(s("live"), nil)
	infra.NewLockTable(stack, s("Locks"), nil).Connect(alias, nil)
	alias.AddEventSource(fromQueue(newQueue(stack, 59)))
	assertions.Annotations_FromStack(stack)
	wantWarnings(t, fn, "the visibility timeout of its queue Test/Queue/Resource is 59 s")
}

// TestImportedFunctions: what the app cannot set is somebody's to do.
func TestImportedFunctions(t *testing.T) {
	const variables = "it is imported, so its environment variables are set where it is managed: set LOCK_TABLE_NAME to the name of Test/Locks"
	const permission = "its role accepts no permissions from the CDK"
	arn := s("arn:aws:lambda:eu-west-1:111111111111:function:orders")
	for name, c := range map[string]struct {
		imported func(awscdk.Stack) awslambda.IFunction
		options  *infra.ConnectOptions
		want     []string
		allowed  bool
	}{
		"by ARN": {func(stack awscdk.Stack) awslambda.IFunction {
			return awslambda.Function_FromFunctionArn(stack, s("Fn"), arn)
		}, nil, []string{variables + ";", permission}, false},
		"by name": {func(stack awscdk.Stack) awslambda.IFunction {
			return awslambda.Function_FromFunctionName(stack, s("Fn"), s("orders"))
		}, &infra.ConnectOptions{Namespace: s("shop")}, []string{variables + ", and LOCK_NAMESPACE to shop;", permission}, false},
		"version": {func(stack awscdk.Stack) awslambda.IFunction {
			return awslambda.Version_FromVersionArn(stack, s("Fn"), s(*arn+":7"))
		}, nil, []string{variables + ";", permission}, false},
		"with its role": {func(stack awscdk.Stack) awslambda.IFunction {
			return awslambda.Function_FromFunctionAttributes(stack, s("Fn"), &awslambda.FunctionAttributes{
				FunctionArn: arn, Role: awsiam.Role_FromRoleName(stack, s("Role"), s("orders"), nil),
			})
		}, nil, []string{variables + ";"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			stack := newStackIn(awscdk.NewApp(nil), "Test", "111111111111", "eu-west-1")
			fn := c.imported(stack)
			locks := infra.NewLockTable(stack, s("Locks"), nil)
			grant := locks.Connect(fn, c.options)
			if *grant.Success() != c.allowed || (len(statements(t, stack, "dynamodb:UpdateItem")) == 1) != c.allowed {
				t.Errorf("allowed is %v", *grant.Success())
			}
			var got []string
			assertions.Annotations_FromStack(stack)
			for _, node := range *stack.Node().FindAll(constructs.ConstructOrder_PREORDER) {
				if *node.Node().Id() == "LockTableConnection" {
					got = annotations(node.Node(), "warning")
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("%q", got)
			}
			for i, want := range c.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("%q, want %q", got[i], want)
				}
			}
		})
	}
}

// TestImportedFunctionOutOfReach: the ARN says where the function is.
func TestImportedFunctionOutOfReach(t *testing.T) {
	stack := newStackIn(awscdk.NewApp(nil), "Test", "111111111111", "eu-west-1")
	fn := awslambda.Function_FromFunctionArn(stack, s("Fn"), s("arn:aws:lambda:us-east-1:111111111111:function:orders"))
	if *infra.NewLockTable(stack, s("Locks"), nil).Connect(fn, nil).Success() {
		t.Error("the grant of a function that cannot reach the table succeeds")
	}
	assertions.Annotations_FromStack(stack)
	got := annotations(fn.Node().FindChild(s("LockTableConnection")).Node(), "error")
	if len(got) != 1 || !strings.Contains(got[0], "Test/Fn runs in Region us-east-1") {
		t.Errorf("%q", got)
	}
}

// TestImportedTables: a table of another app is connected like one's own.
func TestImportedTables(t *testing.T) {
	const arn = "arn:aws:dynamodb:eu-west-1:111111111111:table/orders-locks"
	stack := func() awscdk.Stack { return newStackIn(awscdk.NewApp(nil), "Test", "111111111111", "eu-west-1") }
	for name, imported := range map[string]func(awscdk.Stack) infra.ILockTable{
		"by name": func(stack awscdk.Stack) infra.ILockTable {
			return infra.LockTable_FromTableName(stack, s("Locks"), s("orders-locks"))
		},
		"by ARN": func(stack awscdk.Stack) infra.ILockTable {
			return infra.LockTable_FromTableArn(stack, s("Locks"), s(arn))
		},
	} {
		t.Run(name, func(t *testing.T) {
			stack := stack()
			fn := newFunction(stack, "Fn", &awslambda.FunctionProps{
				LogGroup: awslogs.NewLogGroup(stack, s("Logs"), nil), Environment: &map[string]*string{"LOCK_TABLE_NAME": s("orders-locks")},
			})
			locks := imported(stack)
			locks.Connect(fn, nil)
			fn.AddEventSource(fromQueue(newQueue(stack, 59)))
			assertions.Annotations_FromStack(stack)
			wantWarnings(t, fn, "the visibility timeout")
			if got := messages(fn, "error"); len(got) != 0 {
				t.Errorf("%q", got)
			}
			equal(t, "LOCK_TABLE_NAME", at(only(t, stack, "AWS::Lambda::Function"), "Environment", "Variables", "LOCK_TABLE_NAME"), `"orders-locks"`)
			if resource := encoded(statements(t, stack, "dynamodb:UpdateItem")[0]["Resource"]); !strings.Contains(resource, "table/orders-locks") {
				t.Errorf("the permission is for %s", resource)
			}
			// Without EMF, the alarms of the table's own app count the function too.
			for _, p := range resources(t, stack, "AWS::Logs::MetricFilter") {
				transformations, _ := p["MetricTransformations"].([]any)
				equal(t, "namespace", at(transformations[0], "MetricNamespace"), `"lambdalock/orders-locks"`)
			}
			if n := len(resources(t, stack, "AWS::DynamoDB::Table")); n != 0 {
				t.Errorf("%d tables", n)
			}
		})
	}
	t.Run("in another Region", func(t *testing.T) {
		stack := stack()
		fn := newFunction(stack, "Fn", nil)
		infra.LockTable_FromTableArn(stack, s("Locks"), s("arn:aws:dynamodb:us-east-1:111111111111:table/orders-locks")).Connect(fn, nil)
		if got := synthesisedMessages(fn, "error"); len(got) != 1 || !strings.Contains(got[0], "but its lock table Test/Locks is in us-east-1") {
			t.Errorf("%q", got)
		}
	})
}

// TestNamespaceOfAFunctionWithoutName: it is unique, also in nested stacks, and
// follows the logical ID.
func TestNamespaceOfAFunctionWithoutName(t *testing.T) {
	app := awscdk.NewApp(nil)
	locks := infra.NewLockTable(awscdk.NewStack(app, s("Data"), nil), s("Locks"), nil)
	seen := map[string]bool{}
	connect := func(fn awslambda.Function, prefix string) {
		t.Helper()
		locks.Connect(fn, nil)
		properties := *fn.Node().DefaultChild().(awslambda.CfnFunction).CfnProperties()
		resolved, _ := fn.Stack().Resolve(properties["environment"]).(object)
		namespace, _ := at(resolved, "variables", "LOCK_NAMESPACE").(string)
		if seen[namespace] || !strings.HasPrefix(namespace, prefix) {
			t.Errorf("%s: the namespace is %q", *fn.Node().Path(), namespace)
		}
		seen[namespace] = true
	}
	for _, id := range []string{"A", "B"} {
		stack := awscdk.NewStack(app, s(id), &awscdk.StackProps{StackName: s("shop-" + id)})
		connect(newFunction(stack, "Fn", nil), "shop-"+id+"-Fn")
		nested := awscdk.NewNestedStack(stack, s("Nested"), nil)
		connect(newFunction(nested, "Fn", nil), "shop-"+id+"-NestedNestedStack")
		deep := awscdk.NewNestedStack(nested, s("Nested"), nil)
		connect(newFunction(deep, "Fn", nil), "shop-"+id+"-NestedNestedStack")
	}
	stack := awscdk.NewStack(app, s("C"), nil)
	fn := newFunction(stack, "Moved", nil)
	fn.Node().DefaultChild().(awslambda.CfnFunction).OverrideLogicalId(s("Fn9270CBC0"))
	connect(fn, "C-Fn9270CBC0")
	app.Synth(nil)
}

// TestMetric: users make alarms and graphs of their own.
func TestMetric(t *testing.T) {
	for _, emf := range []bool{false, true} {
		stack := newStack()
		locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{EMF: &emf, TableName: s("orders-locks")})
		m := locks.Metric(s("Lost"), &awscloudwatch.MetricOptions{DimensionsMap: &map[string]*string{"service": s("orders")}, Statistic: s("Average")})
		namespace := map[bool]string{false: "lambdalock/${Token[", true: "lambdalock"}[emf]
		if !strings.HasPrefix(*m.Namespace(), namespace) || *m.MetricName() != "Lost" || *m.Statistic() != "Average" || (*m.Dimensions())["service"] != "orders" {
			t.Errorf("%s %s %s %v", *m.Namespace(), *m.MetricName(), *m.Statistic(), *m.Dimensions())
		}
		if m := locks.Metric(s("Lost"), nil); *m.Statistic() != "Sum" || *m.Period().ToSeconds(nil) != 300 {
			t.Errorf("%s of %v", *m.Statistic(), *m.Period().ToSeconds(nil))
		}
	}
}
