package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// connection is a function that locks in a lock table.
type connection struct {
	table           *lockTable
	fn              awslambda.IFunction
	made            awslambda.Function    // fn; nil if it is imported
	resource        awslambda.CfnFunction // of made
	child           constructs.Construct  // of fn
	annotations     awscdk.Annotations    // of child; nil before the first message
	path            string                // of fn
	resourcePath    string                // of resource; empty if fn is imported
	unreachable     string                // why fn cannot reach the table, or empty
	namespace       *string               // may be a token
	isCounted       bool                  // alarms see the function
	lacksPermission bool                  // fn's role did not take the permission
	scheduled       bool                  // check runs when the stage is synthesised
}

// check adds warnings and errors about the function. It runs after all nodes
// have been read.
func (c *connection) check() {
	if c.unreachable != "" {
		c.fail("function %s %s", c.path, c.unreachable)
		return
	}
	c.checkVariables()
	c.checkSettings()
	c.checkReplicas()
	if c.lacksPermission {
		c.warn(WarnPermission, "its role accepts no permissions from the CDK (it is imported, or made with WithoutPolicyUpdates), so the function may not lock: "+
			"allow dynamodb:UpdateItem on %s where the role is managed, or import it with Mutable true, and an imported function with its role; "+
			"acknowledge this warning when that is done", c.table.path)
	}
	if c.table.alarms != nil && !c.isCounted {
		c.warn(WarnNotCounted, "the CDK does not manage its log group, so the leases it loses, and all else that alarms watch, are not counted: "+
			"set the function's property LogGroup, or ConnectOptions.LogGroup")
	}
}

// checkSettings has the rules judge the function and its asynchronous
// invocations.
func (c *connection) checkSettings() {
	f := c.table.survey.functions[c.resourcePath]
	if f == nil {
		return
	}
	judged := f.settings
	judged.Async, judged.LinesAreCounted = c.table.survey.judgedAsync(c.resourcePath), c.table.alarms != nil
	if c.table.emf {
		judged.LogLevel = "" // which hides no metric
	}
	c.report(judged.Check())
	c.checkSubscribers(judged.Timeout)
}

// report adds a warning for each finding of the rules.
func (c *connection) report(findings []rules.Finding) {
	for _, f := range findings {
		c.warn(idPrefix+f.ID, "%s", f.Text)
	}
}

// checkLater has the function checked at the end of every synthesis, with what
// the survey has found about it.
func (c *connection) checkLater() {
	if c.unreachable != "" || c.resource == nil { // The survey would not find it.
		onValidation(c.child, c.check)
		return
	}
	c.table.survey.connections[c.resourcePath] = c
	c.table.survey.checkLast(c)
}

// warn adds a warning about the function, which users can acknowledge by its
// id.
func (c *connection) warn(id, format string, args ...any) {
	addWarning(c.messages(), id, "lambdalock: function "+c.path+": "+fmt.Sprintf(format, args...))
}

// fail adds an error.
func (c *connection) fail(format string, args ...any) {
	c.messages().AddError(jsii.String("lambdalock: " + fmt.Sprintf(format, args...)))
}

// messages returns the annotations of the function's child. The messages are
// not on the function itself, because a warning that is acknowledged before it
// is added is suppressed on the children only.
func (c *connection) messages() awscdk.Annotations {
	if c.annotations == nil {
		c.annotations = awscdk.Annotations_Of(c.child)
	}
	return c.annotations
}
