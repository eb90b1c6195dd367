package infra

import (
	"fmt"
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
	// Namespace limits the permission to the locks of one namespace. The function
	// gets it in the environment variable LOCK_NAMESPACE, which middleware.WithLock
	// takes as its default. If the code sets a different one with
	// middleware.Namespace, WithLock panics when the function starts.
	//
	// Nil means FunctionName if the function has one, because WithLock takes the
	// function's name too, and otherwise the whole table. A token also means the
	// whole table, because its value is known only at deployment.
	Namespace *string

	// LogGroup is the log group in which the function's lost leases are counted.
	// Nil means the function's log group if the CDK manages it, by the property
	// LogGroup or the feature flag @aws-cdk/aws-lambda:useCdkManagedLogGroup.
	// Otherwise nothing is counted, because there is no log group before the
	// function runs.
	LogGroup awslogs.ILogGroup
}

func (t *lockTable) Connect(fn awslambda.Function, opts *ConnectOptions) {
	if opts == nil {
		opts = &ConnectOptions{}
	}
	// The child marks the function as connected, also to a different table: the
	// second table would overwrite LOCK_TABLE_NAME of the first.
	const childID = "LockTableConnection"
	path := *fn.Node().Path()
	if fn.Node().TryFindChild(jsii.String(childID)) != nil {
		panic(fmt.Sprintf("lambdalock: function %s is already connected: connect a function to one lock table, and only once", path))
	}
	c := &connection{
		table: t, fn: fn, path: path, unreachable: t.unreachable(fn), namespace: namespaceOf(fn, opts.Namespace),
	}
	if f, ok := fn.Node().DefaultChild().(awslambda.CfnFunction); ok {
		c.resourcePath = *f.Node().Path()
	}
	if c.unreachable == "" {
		c.setVariables()
	}
	// The metric filter belongs to the function's scope: in the table's scope it
	// would make the two stacks depend on each other.
	c.child = constructs.NewConstruct(fn, jsii.String(childID))
	if c.unreachable != "" { // The CDK would refuse the grant with worse advice.
		onValidation(c.child, c.check)
		return
	}
	grant := t.grantLock(fn, leadingKeys(c.namespace))
	c.lacksPermission = !*grant.Success() || !hasPolicy(fn.Role())
	group := opts.LogGroup
	if group == nil {
		group = managedLogGroup(fn)
	}
	if group != nil {
		t.countLostLeases(c.child, group)
		c.countsLostLeases = true
	}
	if c.resourcePath == "" { // The survey would not find the function.
		onValidation(c.child, c.check)
		return
	}
	t.survey.connections[c.resourcePath] = c
	t.survey.checkLast(c)
}

// namespaceOf returns the namespace of fn, or nil if only the deployment knows
// it.
//
// A name that CloudFormation generates cannot be used: the policy would depend
// on the function, which depends on its policy so that it is not invoked before
// it may lock. A token cannot be escaped as the library escapes names.
func namespaceOf(fn awslambda.Function, namespace *string) *string {
	if namespace == nil {
		namespace = fn.PhysicalName()
	}
	if *awscdk.Token_IsUnresolved(namespace) {
		return nil
	}
	return namespace
}

// hasPolicy reports whether the CDK manages a policy of role. An immutable role
// accepts a permission and drops it:
// https://docs.aws.amazon.com/cdk/api/v2/docs/aws-cdk-lib.aws_iam.FromRoleArnOptions.html
func hasPolicy(role awsiam.IRole) bool {
	return slices.ContainsFunc(*role.Node().FindAll(constructs.ConstructOrder_PREORDER), func(c constructs.IConstruct) bool {
		_, ok := c.(awsiam.Policy)
		return ok
	})
}
