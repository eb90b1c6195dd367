package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// survey is an aspect that notes what says something about the functions of a
// stage: a queue or a permission may be in another stack than the function, but
// never in another stage. All lock tables of the stage share one survey.
//
// It holds plain data. Every call of the CDK from within one of its callbacks
// deepens the stack of its process, and at some 2,000 the process ends. So there
// is a callback with a few calls for every node, in three steps:
//
//   - Visit notes what there is, and what it refers to. It comes first at every
//     node, because after it the CDK refuses aspects of a lower priority, which
//     others may add.
//   - The node is read when the CDK validates it, which is after all aspects, so
//     that what they change is read as changed.
//   - Each connection and each mapping is judged in Go when the CDK validates the
//     last node of the stage, which is the survey's.
type survey struct {
	root        awscdk.Stage
	stage       string                 // path of root
	tables      []*lockTable           // of the stage
	connections map[string]*connection // by the path of the function's resource
	mappings    map[string]*mapping    // by path
	stacks      map[awscdk.Stack]string
	read        map[string]bool // the nodes that are validated
	last        constructs.Construct

	noted
}

// noted is what one synthesis has seen. Resources are named by their paths.
type noted struct {
	byID        map[string]string   // by path of the stack and logical id
	anywhere    map[string][]string // by logical id
	functions   map[string]*function
	qualifiers  map[string]qualifier // aliases and versions
	queues      map[string]*queue
	kinds       map[string]string // of streams and queues
	permissions []permission
	invokes     map[string]*invoke
	replicas    []replica
	invokers    map[string]map[string][]string // see (*survey).invokersOf
}

func newNoted() noted {
	return noted{
		byID: map[string]string{}, anywhere: map[string][]string{}, functions: map[string]*function{},
		qualifiers: map[string]qualifier{}, queues: map[string]*queue{}, kinds: map[string]string{}, invokes: map[string]*invoke{},
	}
}

// function is what is read of a function.
type function struct {
	timeout     number
	deadLetters bool // it has a dead-letter queue
	variables   variables
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
		root: stage, stage: *stage.Node().Path(), connections: map[string]*connection{}, mappings: map[string]*mapping{},
		stacks: map[awscdk.Stack]string{}, read: map[string]bool{}, noted: newNoted(),
	}
	aspects.Add(v, &awscdk.AspectOptions{Priority: jsii.Number(0)})
	return v
}

// Visit is called by the CDK for every node of the stage.
func (v *survey) Visit(node constructs.IConstruct) {
	switch r := node.(type) {
	case awscdk.Stage: // the first of a synthesis, of which there may be several
		v.noted = newNoted()
		if v.last == nil {
			v.last = constructs.NewConstruct(v.root, jsii.String("LockTableChecks"))
		}
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

// reader reads a node when the CDK validates it.
type reader struct{ read func() }

// Validate is called by the CDK after the aspects.
func (r *reader) Validate() *[]*string {
	r.read()
	return &[]*string{}
}

// readLater reads the node at path in every synthesis.
func (v *survey) readLater(node constructs.IConstruct, path string, read func()) {
	if !v.read[path] {
		v.read[path] = true
		node.Node().AddValidation(&reader{read})
	}
}

// judge has c judged at the end of every synthesis. Before the first there is no
// last node, and the function's resource is still to be visited.
func (v *survey) judge(c *connection) {
	if v.last != nil && !c.judged {
		c.judged = true
		v.last.Node().AddValidation(c)
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
	v.functions[path] = &function{}
	v.readLater(r, path, func() {
		f := v.functions[path]
		// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-lambda-function.html
		f.timeout = numberOf(r.Timeout(), 3)
		f.deadLetters = r.DeadLetterConfig() != nil
		if c := v.connections[path]; c != nil {
			f.variables = c.noteVariables()
		}
	})
	if c := v.connections[path]; c != nil {
		v.judge(c)
	}
}
