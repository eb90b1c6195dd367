package services

import (
	"context"

	"github.com/aws/aws-lambda-go/cfn"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// CloudFormation works on one request for a custom resource at a time, each
// once. Name is stack and logical id of the resource, Event the request id. No
// Order.
//
// Put the lock around the function that answers CloudFormation:
//
//	lambda.Start(middleware.WithLock(services.CloudFormation, cfn.LambdaWrap(handle)))
//
// A request is then completed once its answer, SUCCESS or FAILED, has been
// sent. A duplicate is skipped without a second answer. If the first delivery
// is still running, or the answer could not be sent, the invocation fails, and
// Lambda delivers the request again.
//
// With the lock inside LambdaWrap, two things go wrong: a held lock is reported
// to CloudFormation as FAILED, although the first delivery is about to succeed,
// and a skipped duplicate is reported as SUCCESS with another physical id,
// which replaces the resource.
//
// For requests that come through a topic, [keyfuncs.SNSBody](CloudFormation)
// takes the key of a record.
//
// Sources: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html,
// https://docs.aws.amazon.com/lambda/latest/dg/services-cloudformation.html.
func CloudFormation(_ context.Context, e cfn.Event) (lock.Key, error) {
	if err := keyparts.Required("StackId", e.StackID, "LogicalResourceId", e.LogicalResourceID, "RequestId", e.RequestID); err != nil {
		return lock.Key{}, err
	}
	return lock.Key{Name: keyparts.Name("cloudformation", e.StackID, e.LogicalResourceID), Event: e.RequestID}, nil
}
