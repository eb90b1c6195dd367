package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/cfn"

	"github.com/lambdalock/lambdalock/lock"
)

// CloudFormation works on one request for a custom resource at a time, each once.
// Name is stack and logical id of the resource, Event the request id. No Order.
//
// The lock belongs around what answers CloudFormation:
//
//	lambda.Start(middleware.WithLock(keyfuncs.CloudFormation, cfn.LambdaWrap(handle)))
//
// A request is then completed when its answer, SUCCESS or FAILED, was sent. A
// duplicate is skipped without a second answer. While the first delivery is at
// work, or when the answer could not be sent, the invocation fails, and Lambda
// delivers the request again. The other way round, with the lock inside of
// LambdaWrap, a held lock would be sent to CloudFormation as FAILED, although the
// first delivery is about to succeed, and a skipped duplicate as a SUCCESS with
// another physical id, which replaces the resource.
//
// For requests that come through a topic, [SNSBody](CloudFormation) gives the key of
// a record.
//
// Sources: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html,
// https://docs.aws.amazon.com/lambda/latest/dg/services-cloudformation.html.
func CloudFormation(_ context.Context, e cfn.Event) (lock.Key, error) {
	if err := required(part{"StackId", e.StackID}, part{"LogicalResourceId", e.LogicalResourceID}, part{"RequestId", e.RequestID}); err != nil {
		return lock.Key{}, err
	}
	return lock.Key{Name: named("cloudformation", e.StackID, e.LogicalResourceID), Event: e.RequestID}, nil
}
