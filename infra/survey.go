package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
)

// survey is an aspect that notes, in one visit of every node of a stage, what says
// something about its functions: a queue or a permission may be in another stack
// than the function, but never in another stage. All lock tables of the stage share
// one survey.
//
// It holds plain data. Every call of the CDK from within one of its callbacks
// deepens the stack of its process, and at some 2,000 the process ends. So a visit
// makes a few calls, and what is noted is compared in Go, after the aspects, when
// the CDK validates each connected function and each mapping in a callback of its
// own (connection.Validate, mapping.Validate).
type survey struct {
	stage       string                 // its path
	tables      []*lockTable           // of the stage
	connections map[string]*connection // by the path of the function's resource
	stacks      map[awscdk.Stack]string
	mappings    map[string]*mapping // by path

	noted
}

// noted is what one synthesis has seen. Resources are named by their paths.
type noted struct {
	byID        map[string]string   // by path of the stack and logical id
	anywhere    map[string][]string // by logical id
	timeouts    map[string]number   // of functions
	deadLetters map[string]bool     // functions that have a dead-letter queue
	variables   map[string]variables
	qualifiers  map[string]qualifier // aliases and versions
	queues      map[string]queue
	kinds       map[string]string // of streams and queues
	permissions []permission
	invokes     []invoke
	replicas    []replica
	invokers    map[string]map[string][]string // see (*survey).invokersOf
}

func newNoted() noted {
	return noted{
		byID: map[string]string{}, anywhere: map[string][]string{},
		timeouts: map[string]number{}, deadLetters: map[string]bool{}, variables: map[string]variables{},
		qualifiers: map[string]qualifier{}, queues: map[string]queue{}, kinds: map[string]string{},
	}
}

// surveyOf is the survey of the stage of scope.
func surveyOf(scope constructs.IConstruct) *survey {
	stage := awscdk.Stage_Of(scope)
	aspects := awscdk.Aspects_Of(stage)
	for _, a := range *aspects.All() {
		if v, ok := a.(*survey); ok {
			return v
		}
	}
	v := &survey{
		stage: *stage.Node().Path(), connections: map[string]*connection{},
		stacks: map[awscdk.Stack]string{}, mappings: map[string]*mapping{}, noted: newNoted(),
	}
	// Read-only and so last at every node: what other aspects change is noted as
	// changed.
	aspects.Add(v, &awscdk.AspectOptions{Priority: awscdk.AspectPriority_READONLY()})
	return v
}

// Visit is called by the CDK for every node of the stage.
func (v *survey) Visit(node constructs.IConstruct) {
	switch r := node.(type) {
	case awscdk.Stage: // the first of a synthesis, of which there may be several
		v.noted = newNoted()
	case awslambda.CfnFunction:
		v.noteFunction(r)
	case awslambda.CfnAlias:
		v.qualifiers[v.resource(r)] = qualifier{function: v.reference(r.Stack(), r.FunctionName()), name: *r.Name()}
	case awslambda.CfnVersion:
		v.qualifiers[v.resource(r)] = qualifier{function: v.reference(r.Stack(), r.FunctionName())}
	case awslambda.CfnEventSourceMapping:
		v.noteMapping(r)
	case awslambda.CfnPermission:
		v.notePermission(r)
	case awslambda.CfnEventInvokeConfig:
		v.noteInvoke(r)
	case awssqs.CfnQueue:
		v.noteQueue(r)
	case awskinesis.CfnStream:
		v.kinds[v.resource(r)] = kinesisStream
	case awsdynamodb.CfnTable:
		v.kinds[v.resource(r)] = tableStream
	case awsdynamodb.CfnGlobalTable:
		v.kinds[v.resource(r)] = tableStream
		v.noteGlobal(r)
	case awscdk.CfnResource:
		v.noteReplica(r)
	}
}

// resource is the path of r, which is noted under its logical id, too.
func (v *survey) resource(r awscdk.CfnResource) string {
	path, stack := *r.Node().Path(), r.Stack()
	if id, ok := stack.Resolve(r.LogicalId()).(string); ok {
		v.byID[v.stack(stack)+"/"+id] = path
		v.anywhere[id] = append(v.anywhere[id], path)
	}
	return path
}

func (v *survey) stack(stack awscdk.Stack) string {
	path, ok := v.stacks[stack]
	if !ok {
		path = *stack.Node().Path()
		v.stacks[stack] = path
	}
	return path
}

func (v *survey) noteFunction(r awslambda.CfnFunction) {
	path := v.resource(r)
	// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-lambda-function.html
	v.timeouts[path] = numberOf(r.Timeout(), 3)
	v.deadLetters[path] = r.DeadLetterConfig() != nil
	if c := v.connections[path]; c != nil {
		v.variables[path] = c.noteVariables()
	}
}
