package services

import (
	"context"

	"github.com/aws/aws-lambda-go/cfn"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// CloudFormation works on one request for a custom resource at a time, each
// once. Name is stack and logical id of the resource, Event the request id. No
// Order. Put the lock around the function that answers CloudFormation, for
// reasons in docs/SOURCES.md#custom-resources:
//
//	lambda.Start(middleware.WithLock(services.CloudFormation, cfn.LambdaWrap(handle)))
func CloudFormation(_ context.Context, e cfn.Event) (lock.Key, error) {
	// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html
	if err := keyparts.Required("StackId", e.StackID, "LogicalResourceId", e.LogicalResourceID, "RequestId", e.RequestID); err != nil {
		return lock.Key{}, err
	}
	return lock.Key{Name: keyparts.Name("cloudformation", e.StackID, e.LogicalResourceID), Event: e.RequestID}, nil
}
