package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// survey is an aspect that notes all resources that affect the functions of a
// stage. A queue or a permission may be in a different stack from the function,
// but never in a different stage. All lock tables of a stage share one survey.
//
// A survey holds plain data. Every call of the CDK from within one of its
// callbacks deepens the stack of the node process, which ends at about 2,000
// calls. So every node gets its own callback with few calls, in three steps:
//
//   - Visit notes the resource and what it refers to. It comes before all other
//     aspects, because the CDK refuses an aspect that is added to a node after
//     one with a higher priority value has visited the node.
//   - The properties are read when the CDK validates the resource. That is
//     after all aspects, so changes that they make are seen.
//   - Connections and mappings are checked, in Go, when the CDK validates the
//     last node of the stage, which the survey adds.
type survey struct {
	root        awscdk.Stage
	stage       string                 // path of root
	connections map[string]*connection // by path of the function's resource
	mappings    map[string]*mapping    // by path
	stackPaths  map[awscdk.Stack]string
	readers     map[string]bool      // paths of the nodes that readLater knows
	last        constructs.Construct // nil before the first synthesis

	inventory
}

// surveyOf returns the survey of scope's stage.
func surveyOf(scope constructs.IConstruct) *survey {
	stage := awscdk.Stage_Of(scope)
	aspects := awscdk.Aspects_Of(stage)
	for _, a := range *aspects.All() {
		if v, ok := a.(*survey); ok {
			return v
		}
	}
	v := &survey{
		root:        stage,
		stage:       *stage.Node().Path(),
		connections: map[string]*connection{},
		mappings:    map[string]*mapping{},
		stackPaths:  map[awscdk.Stack]string{},
		readers:     map[string]bool{},
		inventory:   newInventory(),
	}
	aspects.Add(v, &awscdk.AspectOptions{Priority: jsii.Number(0)})
	return v
}

// Visit is called by the CDK for every node of the stage.
func (v *survey) Visit(node constructs.IConstruct) {
	switch r := node.(type) {
	case awscdk.Stage: // the first node of every synthesis
		v.inventory = newInventory()
		if v.last == nil {
			v.last = constructs.NewConstruct(v.root, jsii.String("LockTableChecks"))
		}
	case awslambda.CfnFunction:
		v.noteFunction(r)
	case awslambda.CfnAlias:
		v.noteAlias(r)
	case awslambda.CfnVersion:
		v.noteVersion(r)
	case awslambda.CfnEventSourceMapping:
		v.noteMapping(r)
	case awslambda.CfnPermission:
		v.notePermission(r)
	case awslambda.CfnEventInvokeConfig:
		v.noteAsyncConfig(r)
	case awssqs.CfnQueue:
		v.noteQueue(r)
	case awskinesis.CfnStream:
		v.noteStream(r)
	case awskinesis.CfnStreamConsumer:
		v.noteConsumer(r)
	case awsdynamodb.CfnTable:
		v.sourceKinds[v.note(r)] = rules.DynamoDBStream
	case awsdynamodb.CfnGlobalTable:
		v.sourceKinds[v.note(r)] = rules.DynamoDBStream
		v.noteGlobalTable(r)
	case awscdk.CfnResource:
		switch *r.CfnResourceType() {
		case "Custom::DynamoDBReplica":
			v.noteReplica(r)
		case "AWS::EventsV2::Subscriber":
			v.noteSubscriber(r)
		}
	}
}

// note notes r under its logical id, and returns its path.
func (v *survey) note(r awscdk.CfnResource) string {
	path, stack := *r.Node().Path(), r.Stack()
	if id, ok := stack.Resolve(r.LogicalId()).(string); ok {
		v.pathByID[v.stackPath(stack)+"/"+id] = path
		v.pathsByID[id] = append(v.pathsByID[id], path)
	}
	return path
}

func (v *survey) stackPath(stack awscdk.Stack) string {
	path, ok := v.stackPaths[stack]
	if !ok {
		path = *stack.Node().Path()
		v.stackPaths[stack] = path
	}
	return path
}

// readLater calls read in every synthesis when the CDK validates the node at
// path.
func (v *survey) readLater(node constructs.IConstruct, path string, read func()) {
	if !v.readers[path] {
		v.readers[path] = true
		onValidation(node, read)
	}
}

// checkLast has c checked at the end of every synthesis. Before the first
// synthesis there is no last node; then the visit of the function's resource
// calls it again.
func (v *survey) checkLast(c *connection) {
	if v.last != nil && !c.scheduled {
		c.scheduled = true
		onValidation(v.last, c.check)
	}
}
