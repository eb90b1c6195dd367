package infra

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Ids of the warnings, for Annotations.AcknowledgeWarning.
const (
	// WarnVisibilityTimeout: a queue gives a message back while it is worked on.
	WarnVisibilityTimeout = "@lambdalock/infra:visibilityTimeout"
	// WarnPartialAnswer: Lambda ignores which records of a batch failed.
	WarnPartialAnswer = "@lambdalock/infra:partialAnswer"
	// WarnFailureDestination: an event that failed three times is gone.
	WarnFailureDestination = "@lambdalock/infra:failureDestination"
	// WarnLeasesNotCounted: the alarm for lost leases does not see this function.
	WarnLeasesNotCounted = "@lambdalock/infra:leasesNotCounted"
)

// checks is an aspect that looks at everything around the connected functions,
// once, when the app is synthesised.
type checks struct{ table *lockTable }

// Visit is called by the CDK for the lock table and what is inside it.
func (c *checks) Visit(node constructs.IConstruct) {
	if *node.Node().Path() != *c.table.Node().Path() || len(c.table.connected) == 0 {
		return
	}
	v := newSurvey(node)
	replicated := v.replication(c.table)
	for _, conn := range c.table.connected {
		// On a child, because what a person acknowledges for the function before it is
		// said counts for the children only.
		f := &function{fn: conn.fn, path: *conn.fn.Node().Path(), notes: awscdk.Annotations_Of(conn.child)}
		v.checkMappings(f)
		v.checkFailureDestination(f)
		if replicated != "" {
			f.notes.AddError(jsii.String(fmt.Sprintf("lambdalock: function %s locks in a table that %s replicates asynchronously: "+
				"conditions are evaluated per Region, so that two Regions can hold one lock. "+
				"Remove the replica, or use a global table with MultiRegionConsistency STRONG", f.path, replicated)))
		}
		if c.table.watched && !conn.counts {
			f.warn(WarnLeasesNotCounted, "its log group is not managed by the CDK, so the leases it loses are not counted: "+
				"give it the property LogGroup, or set ConnectOptions.LogGroup")
		}
	}
}

// function is a connected function under inspection.
type function struct {
	fn    awslambda.Function
	path  string
	notes awscdk.Annotations
}

func (f *function) warn(id, format string, args ...any) {
	f.notes.AddWarningV2(jsii.String(id), jsii.String("lambdalock: function "+f.path+": "+fmt.Sprintf(format, args...)))
}

func (v *survey) checkMappings(f *function) {
	for _, m := range v.mappings {
		if v.function(m.Stack(), m.FunctionName()) != f.path {
			continue
		}
		kind, source := v.source(m)
		if kind == "" {
			continue
		}
		if q, ok := source.(awssqs.CfnQueue); ok {
			v.checkVisibility(f, q)
		}
		if !reportsFailures(m) {
			// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
			f.warn(WarnPartialAnswer, "its event source mapping %s (%s) does not report batch item failures: "+
				"EachSQSMessage and its like answer which records failed, and without the setting Lambda takes them all for done. "+
				"Set ReportBatchItemFailures; or acknowledge this warning if the function returns no partial answer", *m.Node().Path(), kind)
		}
	}
}

func reportsFailures(m awslambda.CfnEventSourceMapping) bool {
	types := m.FunctionResponseTypes()
	return types != nil && slices.ContainsFunc(*types, func(t *string) bool { return *t == "ReportBatchItemFailures" })
}

// Defaults of CloudFormation, in seconds:
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-sqs-queue.html
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-lambda-function.html
const (
	defaultVisibility = 30
	defaultTimeout    = 3
)

// checkVisibility: a message that comes back while it is worked on finds its lock
// held, and spends one of its receives on that.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
func (v *survey) checkVisibility(f *function, q awssqs.CfnQueue) {
	r, ok := f.fn.Node().DefaultChild().(awslambda.CfnFunction)
	if !ok {
		return
	}
	timeout, known := seconds(r.Timeout(), defaultTimeout)
	visibility, knownToo := seconds(q.VisibilityTimeout(), defaultVisibility)
	if known && knownToo && visibility < 6*timeout {
		f.warn(WarnVisibilityTimeout, "the visibility timeout of its queue %s is %g s, less than six times the function's timeout of %g s, "+
			"so that messages come back while they are worked on: set VisibilityTimeout to %g s at least", *q.Node().Path(), visibility, timeout, 6*timeout)
	}
}

// seconds is not known when it is a parameter of the deployment.
func seconds(value *float64, otherwise float64) (float64, bool) {
	if value == nil {
		return otherwise, true
	}
	return *value, !*awscdk.Token_IsUnresolved(value)
}

// asynchronous are the services that invoke a function and do not wait for it:
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-services.html
var asynchronous = []string{"s3", "sns", "events", "scheduler", "iot", "logs"}

// checkFailureDestination: a held lock fails the invocation, and Lambda gives up
// after the third attempt:
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
func (v *survey) checkFailureDestination(f *function) {
	var sources []string
	for _, p := range v.permissions {
		service, _, _ := strings.Cut(fmt.Sprint(p.Stack().Resolve(p.Principal())), ".") // logs.eu-west-1.amazonaws.com, too
		if slices.Contains(asynchronous, service) && !slices.Contains(sources, service) && v.function(p.Stack(), p.FunctionName()) == f.path {
			sources = append(sources, service)
		}
	}
	if len(sources) == 0 || v.keepsFailures(f) {
		return
	}
	f.warn(WarnFailureDestination, "it is invoked asynchronously (%s) and has neither dead-letter queue nor failure destination, "+
		"so that an event which fails three times, as behind a lock that is held for long, is lost: set OnFailure or DeadLetterQueue",
		strings.Join(sources, ", "))
}

func (v *survey) keepsFailures(f *function) bool {
	if r, ok := f.fn.Node().DefaultChild().(awslambda.CfnFunction); ok && r.DeadLetterConfig() != nil {
		return true
	}
	for _, c := range v.invokes {
		destinations, _ := resolve(c.Stack(), c.DestinationConfig()).(map[string]any)
		if destinations["onFailure"] != nil && v.function(c.Stack(), c.FunctionName()) == f.path {
			return true
		}
	}
	return false
}

// replication is the path of what replicates the table asynchronously, or "".
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/multi-region-strong-consistency-gt.html
func (v *survey) replication(t *lockTable) string {
	table := *t.table.Node().DefaultChild().Node().Path()
	for _, r := range v.replicas { // what Table makes of ReplicationRegions
		properties := r.CfnProperties()
		if properties == nil {
			continue
		}
		name, _ := (*properties)["TableName"].(string)
		if target := v.target(r.Stack(), &name); sameName(&name, t.name) || target != nil && *target.Node().Path() == table {
			return *r.Node().Path()
		}
	}
	for _, g := range v.globals {
		replicas, _ := resolve(g.Stack(), g.Replicas()).([]any)
		strong := g.MultiRegionConsistency() != nil && *g.MultiRegionConsistency() == "STRONG"
		if len(replicas) > 1 && !strong && sameName(g.TableName(), t.name) {
			return *g.Node().Path()
		}
	}
	return ""
}

func sameName(a, b *string) bool { return a != nil && b != nil && *a == *b }
