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
	// takes as its default. Functions that lock the same names need the same one.
	//
	// Nil means FunctionName if the function has one, and otherwise its stack's
	// name and its logical ID, with which CloudFormation begins its name. That
	// changes if the function is moved to another place in the tree: set Namespace
	// before, because a new namespace knows neither the locks nor the completed
	// events of the old one.
	//
	// If it is a token, the permission is for the whole table. An empty one
	// panics, because the function would take it for none.
	Namespace *string

	// LogGroup is the log group whose lines the alarms count. Nil means the
	// function's log group if the CDK manages it, by the property LogGroup or the
	// feature flag @aws-cdk/aws-lambda:useCdkManagedLogGroup. Otherwise nothing is
	// counted, because there is no log group before the function runs.
	LogGroup awslogs.ILogGroup
}

func (t *lockTable) Connect(fn awslambda.IFunction, opts *ConnectOptions) awsiam.Grant {
	if opts == nil {
		opts = &ConnectOptions{}
	}
	c := t.connection(fn, opts.Namespace)
	defer c.checkLater()
	if c.unreachable != "" { // The CDK would refuse the grant with worse advice.
		return awsiam.Grant_Drop(c.fn, jsii.String("lock in "+t.path))
	}
	t.measure(c, opts.LogGroup)
	if c.fn.Role() == nil { // imported without it
		c.lacksPermission = true
		return awsiam.Grant_Drop(c.fn, jsii.String("lock in "+t.path))
	}
	grant := t.grantLock(c.fn, leadingKeys(c.namespace))
	c.lacksPermission = !*grant.Success() || !hasPolicy(c.fn.Role())
	return grant
}

// connection marks fn as connected, and sets its variables.
func (t *lockTable) connection(fn awslambda.IFunction, namespace *string) *connection {
	c := &connection{table: t, fn: unqualified(fn)}
	if r, ok := c.fn.PermissionsNode().TryFindChild(jsii.String("Resource")).(awslambda.CfnFunction); ok {
		// Of a SingletonFunction, this is the function that all with its Uuid share.
		c.made = r.Node().Scope().(awslambda.Function)
		c.fn, c.resource, c.resourcePath = c.made, r, *r.Node().Path()
	}
	c.path, c.unreachable = *c.fn.Node().Path(), t.unreachable(c.fn)
	c.namespace = c.namespaceOr(namespace)
	// The child marks the function as connected, also to a different table: the
	// second table would overwrite LOCK_TABLE_NAME of the first.
	const childID = "LockTableConnection"
	if c.fn.Node().TryFindChild(jsii.String(childID)) != nil {
		panic(fmt.Sprintf("lambdalock: function %s is already connected: connect a function to one lock table, and only once", c.path))
	}
	if c.unreachable == "" && c.made != nil {
		c.setVariables()
	}
	// The metric filters belong to the function's scope: in the table's scope they
	// would make the two stacks depend on each other.
	c.child = constructs.NewConstruct(c.fn.(constructs.Construct), jsii.String(childID))
	return c
}

// unqualified returns the function of an alias or a version.
func unqualified(fn awslambda.IFunction) awslambda.IFunction {
	switch fn := fn.(type) {
	case awslambda.IAlias:
		return fn.Version().Lambda()
	case awslambda.IVersion:
		return fn.Lambda()
	}
	return fn
}

// namespaceOr returns the namespace of the function. A name that CloudFormation
// generates cannot be used: the policy would depend on the function, which
// depends on its policy so that it is not invoked before it may lock.
func (c *connection) namespaceOr(given *string) *string {
	switch {
	case given != nil && *given == "":
		panic(fmt.Sprintf("lambdalock: function %s got an empty ConnectOptions.Namespace, which it would take for none, and lock where it has no permission: "+
			"give it a namespace, or nil for the function's name", c.path))
	case given != nil:
		return given
	case c.made == nil:
		return c.fn.FunctionName()
	case !*awscdk.Token_IsUnresolved(c.made.PhysicalName()):
		return c.made.PhysicalName()
	}
	stack, name := c.resource.Stack(), logicalID(c.resource)
	for stack.NestedStackParent() != nil { // whose name is generated too
		name = logicalID(stack.NestedStackResource()) + "-" + name
		stack = stack.NestedStackParent()
	}
	return jsii.String(*stack.StackName() + "-" + name)
}

func logicalID(r awscdk.CfnResource) string {
	id, _ := r.Stack().Resolve(r.LogicalId()).(string)
	return id
}

// measure counts what the alarms watch.
func (t *lockTable) measure(c *connection, group awslogs.ILogGroup) {
	t.connections = append(t.connections, c)
	if t.emf {
		if !isDimension(*c.namespace) {
			panic(fmt.Sprintf("lambdalock: function %s has the namespace %q, which CloudWatch does not take as the value of a dimension: "+
				"set ConnectOptions.Namespace to printable ASCII that does not begin with a colon, or leave out LockTableProps.EMF", c.path, *c.namespace))
		}
		c.isCounted = true
		t.addServiceAlarms(c)
		return
	}
	if group == nil && c.made != nil {
		group = managedLogGroup(c.made)
	}
	if group != nil {
		t.countLines(c.child, group)
		c.isCounted = true
	}
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
