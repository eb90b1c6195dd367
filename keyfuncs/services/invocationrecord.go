package services

import (
	"context"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// InvocationRecord handles each record once that Lambda sends to a destination:
// how an asynchronous invocation of another function ended. Name is that
// function and the request id, which all attempts share; Event is the id and
// the condition, such as RetriesExhausted. No Order. In a queue, a topic or on
// EventBridge, wrap it in [keyfuncs.SQSBody], [keyfuncs.SNSBody] or
// [keyfuncs.EventBridgeDetail].
func InvocationRecord(_ context.Context, r awsevents.InvocationRecord) (lock.Key, error) {
	c := r.RequestContext
	if err := keyparts.Required("requestContext.functionArn", c.FunctionARN, "requestContext.requestId", c.RequestID); err != nil {
		return lock.Key{}, err
	}
	return lock.Key{Name: keyparts.Name("invocation", c.FunctionARN, c.RequestID), Event: c.RequestID + "/" + c.Condition}, nil
}
