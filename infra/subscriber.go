package infra

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// subscriber invokes a function with the events of a Custom Event Bus.
type subscriber struct {
	function reference
	settings rules.Subscriber
}

// noteSubscriber notes a subscriber, for which the CDK of go.mod has no type.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eventsv2-subscriber.html
func (v *survey) noteSubscriber(r awscdk.CfnResource) {
	properties := r.CfnProperties()
	if properties == nil {
		return
	}
	resolved := resolve(r.Stack(), *properties)
	invoke, retry := member(resolved, "InvokeConfiguration"), member(resolved, "RetryPolicy")
	parameters, target := member(invoke, "LambdaParameters"), member(invoke, "TargetArn")
	s := subscriber{
		function: reference{stack: v.stackPath(r.Stack()), logicalIDs: logicalIDs(target), text: encoded(target)},
		settings: rules.Subscriber{
			Name:                  *r.Node().Path(),
			HasFailureDestination: member(resolved, "OnFailureConfiguration") != nil,
			Retries:               memberOr(retry, "MaxRetryAttempts", 5),
			EventAge:              memberOr(retry, "MaxEventAgeInSeconds", 300),
		},
	}
	switch member(parameters, "InvocationType") {
	case "REQUEST_RESPONSE":
		s.settings.Waits = memberOr(parameters, "InvocationTimeoutSeconds", 30)
	case "EVENT":
		v.asyncPermissions = append(v.asyncPermissions, asyncPermission{s.function, "a Custom Event Bus"})
	}
	v.subscribers = append(v.subscribers, s)
}

// checkSubscribers has the rules judge what sends the function the events of
// Custom Event Buses.
func (c *connection) checkSubscribers(timeout rules.Number) {
	v := c.table.survey
	for i := range v.subscribers {
		if function, _ := v.functionOf(v.subscribers[i].function); function == c.resourcePath {
			c.report(v.subscribers[i].settings.Check(timeout))
		}
	}
}

// member returns a member of an object, by its name in CloudFormation. The
// constructs of later CDKs begin it with a small letter.
func member(object any, name string) any {
	members, _ := object.(map[string]any)
	if value, ok := members[name]; ok {
		return value
	}
	return members[strings.ToLower(name[:1])+name[1:]]
}

// memberOr returns a number in an object, or otherwise if it is not there.
func memberOr(object any, name string, otherwise float64) rules.Number {
	if value := member(object, name); value != nil {
		return parsedNumber(value)
	}
	return rules.Known(otherwise)
}
