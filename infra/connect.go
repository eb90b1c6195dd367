package infra

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// ConnectOptions changes the defaults of LockTable.Connect.
type ConnectOptions struct {
	// Namespace limits the permission to the locks of this namespace. The function
	// gets it in the environment variable LOCK_NAMESPACE, which middleware.WithLock
	// takes as its default; if the code gives another one with middleware.Namespace,
	// WithLock panics when the function starts.
	// Default: FunctionName, if that is set, which is what WithLock takes without
	// the variable; else the permission is for the whole table. So it is if the
	// namespace is a token, whose value only the deployment knows.
	Namespace *string

	// LogGroup is where the function logs; the leases it loses are counted there.
	// Default: the log group of the function, if the CDK manages it (the property
	// LogGroup, or the feature flag @aws-cdk/aws-lambda:useCdkManagedLogGroup);
	// else nothing is counted.
	LogGroup awslogs.ILogGroup
}

// connection is a function that locks in the table.
type connection struct {
	table       *lockTable
	fn          awslambda.Function
	child       constructs.Construct // of fn
	annotations awscdk.Annotations   // of child
	path        string               // of fn
	resource    string               // path of fn's resource
	apart       string               // why fn cannot reach the table, if it cannot
	namespace   *string              // nil if only the deployment knows it
	counts      bool                 // the leases that fn loses
	unpermitted bool                 // fn's role took no permission
	judged      bool                 // when the stage is synthesised
}

func (t *lockTable) Connect(fn awslambda.Function, opts *ConnectOptions) {
	if opts == nil {
		opts = &ConnectOptions{}
	}
	// The child marks the function as connected, also to another table: the second
	// would take LOCK_TABLE_NAME from the first.
	const name = "LockTableConnection"
	path := *fn.Node().Path()
	if fn.Node().TryFindChild(jsii.String(name)) != nil {
		panic(fmt.Sprintf("lambdalock: function %s is connected already: connect it to one lock table, once", path))
	}
	c := &connection{
		table: t, fn: fn, path: path, apart: t.apart(fn), namespace: namespaceOf(fn, opts.Namespace),
	}
	if f, ok := fn.Node().DefaultChild().(awslambda.CfnFunction); ok {
		c.resource = *f.Node().Path()
	}
	if c.apart == "" {
		c.setVariables()
	}
	// In the function's scope, because a filter in the table's would make the two
	// stacks depend on each other if they are not the same.
	c.child = constructs.NewConstruct(fn, jsii.String(name))
	if c.apart != "" { // The CDK would refuse, too, and give worse advice.
		c.child.Node().AddValidation(c)
		return
	}
	grant := t.grant(fn, leadingKeys(c.namespace), lockActions)
	c.unpermitted = !*grant.Success() || !hasPolicy(fn.Role())
	group := opts.LogGroup
	if group == nil {
		group = managedLogGroup(fn)
	}
	if group != nil {
		countLost(c.child, group)
		c.counts = true
	}
	if c.resource == "" { // The survey would not find it.
		c.child.Node().AddValidation(c)
		return
	}
	t.survey.connections[c.resource] = c
	t.survey.judge(c)
}

// apart says why fn cannot reach the table, or "": it looks for the table by its
// name, in its own account and Region.
func (t *lockTable) apart(fn awslambda.Function) string {
	if *awscdk.Stage_Of(fn).Node().Path() != t.survey.stage {
		return fmt.Sprintf("is in another stage of the app than its lock table %s: stages are deployed apart. "+
			"Make a lock table in the function's stage, and connect it to that", t.path)
	}
	function, table := fn.Stack(), t.table.Stack()
	for _, p := range []struct {
		name            string
		function, table *string
	}{
		{"Region", function.Region(), table.Region()},
		{"account", function.Account(), table.Account()},
	} {
		if *p.function != *p.table && !*awscdk.Token_IsUnresolved(p.function) && !*awscdk.Token_IsUnresolved(p.table) {
			return fmt.Sprintf("runs in %s %s, and its lock table %s is in %s: it looks for the table in its own Region and account. "+
				"Make a lock table there and connect it to that, or move the function to where the table is; "+
				"functions that share locks must share a table", p.name, *p.function, t.path, *p.table)
		}
	}
	return ""
}

// hasPolicy reports whether the CDK keeps a policy of role. One that cannot be
// changed takes a permission, and drops it:
// https://docs.aws.amazon.com/cdk/api/v2/docs/aws-cdk-lib.aws_iam.FromRoleArnOptions.html
func hasPolicy(role awsiam.IRole) bool {
	return slices.ContainsFunc(*role.Node().FindAll(constructs.ConstructOrder_PREORDER), func(c constructs.IConstruct) bool {
		_, ok := c.(awsiam.Policy)
		return ok
	})
}

var (
	// One action for acquire, renew and release.
	lockActions = []string{"dynamodb:UpdateItem"}

	// The least that shows what is locked: one lock by its name, all of them, and
	// whether the table is as it should be. No Query: a table without a sort key has
	// one item for each key, which is what GetItem returns.
	inspectActions = []string{"dynamodb:GetItem", "dynamodb:Scan", "dynamodb:DescribeTable"}

	// What a caller needs of a key of one's own, because DynamoDB uses it on the
	// caller's behalf:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
	readKeyActions  = []string{"kms:Decrypt", "kms:DescribeKey"}
	writeKeyActions = []string{"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"}
)

func (t *lockTable) GrantLock(grantee awsiam.IGrantable) awsiam.Grant {
	return t.grant(grantee, nil, lockActions)
}

func (t *lockTable) GrantInspect(grantee awsiam.IGrantable) awsiam.Grant {
	grant := t.grantTable(grantee, nil, inspectActions)
	t.grantKey(grantee, readKeyActions)
	return grant
}

func (t *lockTable) grant(grantee awsiam.IGrantable, conditions *map[string]*map[string]any, actions []string) awsiam.Grant {
	grant := t.grantTable(grantee, conditions, actions)
	t.grantKey(grantee, writeKeyActions)
	return grant
}

// grantTable does not use Table.Grant, which takes no conditions.
func (t *lockTable) grantTable(grantee awsiam.IGrantable, conditions *map[string]*map[string]any, actions []string) awsiam.Grant {
	return awsiam.Grant_AddToPrincipal(&awsiam.GrantOnPrincipalOptions{
		Grantee:      grantee,
		Actions:      jsii.Strings(actions...),
		ResourceArns: jsii.Strings(*t.table.TableArn()),
		Conditions:   conditions,
	})
}

func (t *lockTable) grantKey(grantee awsiam.IGrantable, actions []string) {
	if t.key != nil {
		t.key.Grant(grantee, *jsii.Strings(actions...)...)
	}
}

// namespaceOf is the namespace of fn, or nil if only the deployment knows it.
//
// A name that CloudFormation makes cannot be used: the policy would depend on the
// function, and the function depends on its policy, so that it is not invoked
// before it may lock. Neither can a token be escaped as the library escapes names.
func namespaceOf(fn awslambda.Function, namespace *string) *string {
	if namespace == nil {
		namespace = fn.PhysicalName()
	}
	if *awscdk.Token_IsUnresolved(namespace) {
		return nil
	}
	return namespace
}

// leadingKeys limits a permission to the rows of a namespace, whose keys begin
// with it: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
//
// ForAllValues holds where the key is missing, too, so Null requires it:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
func leadingKeys(namespace *string) *map[string]*map[string]any {
	if namespace == nil {
		return nil
	}
	// No wildcard of IAM is left in it: * and ? are escaped, and so is the { of a
	// policy variable.
	return &map[string]*map[string]any{
		"ForAllValues:StringLike": {"dynamodb:LeadingKeys": url.PathEscape(*namespace) + "/*"},
		"Null":                    {"dynamodb:LeadingKeys": "false"},
	}
}

// managedLogGroup is the log group of fn, or nil if Lambda makes it at the first
// invocation. Function.LogGroup must not be asked in that case: it would add a
// custom resource to the stack, with a function of its own.
func managedLogGroup(fn awslambda.Function) awslogs.ILogGroup {
	if fn.Node().TryFindChild(jsii.String("LogGroup")) != nil { // by the feature flag, or by LogRetention
		return fn.LogGroup()
	}
	f, ok := fn.Node().DefaultChild().(awslambda.CfnFunction)
	if !ok {
		return nil
	}
	logging, _ := resolve(fn.Stack(), f.LoggingConfig()).(map[string]any)
	if logging["logGroup"] == nil {
		return nil
	}
	return fn.LogGroup()
}

// The metric of lost leases has no dimensions, because a filter can take those
// from fields of the log line only:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntaxForMetricFilters.html
const (
	metricNamespace = "lambdalock"
	leaseLost       = "LeaseLost"
)

// countLost matches the message in lines of text and of JSON.
func countLost(scope constructs.Construct, group awslogs.ILogGroup) {
	awslogs.NewMetricFilter(scope, jsii.String(leaseLost), &awslogs.MetricFilterProps{
		LogGroup:        group,
		FilterPattern:   awslogs.FilterPattern_Literal(jsii.String(`"lambdalock: lost"`)),
		MetricNamespace: jsii.String(metricNamespace),
		MetricName:      jsii.String(leaseLost),
		MetricValue:     jsii.String("1"),
	})
}
