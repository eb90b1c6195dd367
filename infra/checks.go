package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// Ids of the warnings, for Annotations.AcknowledgeWarning.
const (
	// WarnVisibilityTimeout: a queue gives a message back while it is worked on.
	WarnVisibilityTimeout = "@lambdalock/infra:visibilityTimeout"
	// WarnDeadLetterQueue: a message that always fails comes back until it expires.
	WarnDeadLetterQueue = "@lambdalock/infra:deadLetterQueue"
	// WarnMaxReceiveCount: a message that finds its lock held once is taken for
	// failed.
	WarnMaxReceiveCount = "@lambdalock/infra:maxReceiveCount"
	// WarnPartialAnswer: Lambda ignores which records of a batch failed.
	WarnPartialAnswer = "@lambdalock/infra:partialAnswer"
	// WarnRetryLimit: a record that always fails blocks its shard until it expires.
	WarnRetryLimit = "@lambdalock/infra:retryLimit"
	// WarnFailureDestination: an event that failed three times is gone.
	WarnFailureDestination = "@lambdalock/infra:failureDestination"
	// WarnLeasesNotCounted: the alarm for lost leases does not see this function.
	WarnLeasesNotCounted = "@lambdalock/infra:leasesNotCounted"
	// WarnLeasesLostTwice: two alarms are about one metric. It is said of the alarm.
	WarnLeasesLostTwice = "@lambdalock/infra:leasesLostTwice"
	// WarnPermission: the function's role did not take the permission to lock.
	WarnPermission = "@lambdalock/infra:permission"
	// WarnStrongGlobalTable: the table lacks what other tables have.
	WarnStrongGlobalTable = "@lambdalock/infra:strongGlobalTable"
)

// Validate is called by the CDK when all nodes are read.
// What it finds becomes a warning or an error about the function, and never an
// answer: one of those would end the synthesis, and hide what else there is to say.
func (c *connection) Validate() *[]*string {
	if c.apart != "" {
		c.fail("function %s %s", c.path, c.apart)
		return &[]*string{}
	}
	c.checkVariables()
	c.checkFailureDestination()
	c.checkReplication()
	if c.unpermitted {
		c.warn(WarnPermission, "its role takes no permissions from the CDK (it is imported, or made with WithoutPolicyUpdates), so it may not lock: "+
			"allow dynamodb:UpdateItem on %s where the role is managed, or import the role with Mutable true; "+
			"acknowledge this warning if that is done", c.table.path)
	}
	if c.table.alarms != nil && !c.counts {
		c.warn(WarnLeasesNotCounted, "its log group is not managed by the CDK, so the leases it loses are not counted: "+
			"give it the property LogGroup, or set ConnectOptions.LogGroup")
	}
	return &[]*string{}
}

// notes are on a child of the function, because what a person acknowledges for the
// function before it is said counts for the children only.
func (c *connection) notes() awscdk.Annotations {
	if c.annotations == nil {
		c.annotations = awscdk.Annotations_Of(c.child)
	}
	return c.annotations
}

func (c *connection) warn(id, format string, args ...any) {
	c.notes().AddWarningV2(jsii.String(id), jsii.String("lambdalock: function "+c.path+": "+fmt.Sprintf(format, args...)))
}

func (c *connection) fail(format string, args ...any) {
	c.notes().AddError(jsii.String("lambdalock: " + fmt.Sprintf(format, args...)))
}
