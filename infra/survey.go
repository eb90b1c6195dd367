package infra

import (
	"encoding/json"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
)

// survey holds the resources of an app that say something about its functions.
type survey struct {
	resources   map[string]constructs.IConstruct // by path of the stack and logical id
	mappings    []awslambda.CfnEventSourceMapping
	permissions []awslambda.CfnPermission
	invokes     []awslambda.CfnEventInvokeConfig
	replicas    []awscdk.CfnResource
	globals     []awsdynamodb.CfnGlobalTable
}

// newSurvey looks at the whole stage of node: a queue or a permission may be in
// another stack than the function, but never in another stage.
func newSurvey(node constructs.IConstruct) *survey {
	v := &survey{resources: map[string]constructs.IConstruct{}}
	for _, c := range *awscdk.Stage_Of(node).Node().FindAll(constructs.ConstructOrder_PREORDER) {
		r, ok := c.(awscdk.CfnResource)
		if !ok {
			continue
		}
		v.resources[resourceKey(r.Stack(), r.Stack().Resolve(r.LogicalId()))] = c
		switch c := c.(type) {
		case awslambda.CfnEventSourceMapping:
			v.mappings = append(v.mappings, c)
		case awslambda.CfnPermission:
			v.permissions = append(v.permissions, c)
		case awslambda.CfnEventInvokeConfig:
			v.invokes = append(v.invokes, c)
		case awsdynamodb.CfnGlobalTable:
			v.globals = append(v.globals, c)
		default:
			if *r.CfnResourceType() == "Custom::DynamoDBReplica" {
				v.replicas = append(v.replicas, r)
			}
		}
	}
	return v
}

// resolve is Stack.Resolve, which does not take nil.
func resolve(stack awscdk.Stack, value any) any {
	if value == nil {
		return nil
	}
	return stack.Resolve(value)
}

func resourceKey(stack awscdk.Stack, logicalID any) string {
	id, _ := logicalID.(string)
	return *stack.Node().Path() + "/" + id
}

// target is the resource that value, a property of a resource in stack, refers to;
// nil if that is not part of the app.
func (v *survey) target(stack awscdk.Stack, value *string) constructs.IConstruct {
	if value == nil || !*awscdk.Token_IsUnresolved(value) {
		return nil
	}
	for _, token := range *awscdk.Tokenization_ReverseString(value).Tokens() {
		if r, ok := token.(awscdk.Reference); ok { // to any stack
			return r.Target()
		}
	}
	// Inside an expression, as the name of an alias is, only the logical id is seen.
	for _, id := range references(stack.Resolve(value)) {
		if c := v.resources[resourceKey(stack, id)]; c != nil {
			return c
		}
	}
	return nil
}

// references are the logical ids in a resolved value.
func references(value any) []string {
	var ids []string
	switch value := value.(type) {
	case []any:
		for _, e := range value {
			ids = append(ids, references(e)...)
		}
	case map[string]any:
		for k, e := range value {
			if id, ok := e.(string); ok && k == "Ref" {
				ids = append(ids, id)
				continue
			}
			if path, ok := e.([]any); ok && k == "Fn::GetAtt" && len(path) > 0 {
				id, _ := path[0].(string)
				ids = append(ids, id)
				continue
			}
			ids = append(ids, references(e)...)
		}
	}
	return ids
}

// function is the path of the function that name, a property of a resource in
// stack, means: directly, or through a version or an alias.
func (v *survey) function(stack awscdk.Stack, name *string) string {
	switch r := v.target(stack, name).(type) {
	case awslambda.CfnAlias:
		return v.function(r.Stack(), r.FunctionName())
	case awslambda.CfnVersion:
		return v.function(r.Stack(), r.FunctionName())
	case awslambda.CfnFunction:
		return *r.Node().Scope().Node().Path()
	}
	return ""
}

// source is what kind of stream or queue a mapping reads, and its resource if it is
// part of the app. The kind is empty if the mapping takes no partial answers.
func (v *survey) source(m awslambda.CfnEventSourceMapping) (string, constructs.IConstruct) {
	source := v.target(m.Stack(), m.EventSourceArn())
	switch source.(type) {
	case awssqs.CfnQueue:
		return "SQS", source
	case awskinesis.CfnStream:
		return "Kinesis", source
	case awsdynamodb.CfnTable, awsdynamodb.CfnGlobalTable:
		return "DynamoDB stream", source
	}
	arn, _ := json.Marshal(m.Stack().Resolve(m.EventSourceArn())) // what was resolved is JSON
	for service, kind := range map[string]string{":sqs:": "SQS", ":kinesis:": "Kinesis", ":dynamodb:": "DynamoDB stream"} {
		if strings.Contains(string(arn), service) {
			return kind, nil
		}
	}
	return "", nil
}
