package deployed

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// readQueue reads the queue of a mapping, and its dead-letter queue.
func (r *Reader) readQueue(ctx context.Context, f *Function, m *rules.Mapping, arn string) {
	has, err := r.attributes(ctx, arn)
	if err != nil {
		f.unread("the SQS queue "+m.Source, err.action, err.error)
		return
	}
	redrive := has[sqstypes.QueueAttributeNameRedrivePolicy]
	var policy struct {
		DeadLetterTargetARN string          `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.RawMessage `json:"maxReceiveCount"` // a number, or one in quotes
	}
	_ = json.Unmarshal([]byte(redrive), &policy) // without a policy there is no count
	m.Queue = &rules.Queue{
		VisibilityTimeout: parsed(has[sqstypes.QueueAttributeNameVisibilityTimeout]),
		HasRedrivePolicy:  redrive != "",
		MaxReceiveCount:   parsed(strings.Trim(string(policy.MaxReceiveCount), `"`)),
		FIFO:              strings.HasSuffix(arn, ".fifo"),
	}
	m.Retention = parsed(has[sqstypes.QueueAttributeNameMessageRetentionPeriod])
	if policy.DeadLetterTargetARN == "" {
		return
	}
	dead, err := r.attributes(ctx, policy.DeadLetterTargetARN)
	switch {
	case err != nil && f.owns(policy.DeadLetterTargetARN) && err.gone():
		m.Queue.GoneDeadLetterQueue = resource(policy.DeadLetterTargetARN)
	case err != nil:
		f.unread("the dead-letter queue "+resource(policy.DeadLetterTargetARN), err.action, err.error)
	default:
		m.Queue.DeadLetterRetention = parsed(dead[sqstypes.QueueAttributeNameMessageRetentionPeriod])
	}
}

// queueError is the error of an action.
type queueError struct {
	action string
	error
}

// gone reports that there is no such queue.
func (e *queueError) gone() bool { return errors.As(e.error, new(*sqstypes.QueueDoesNotExist)) }

// url returns the URL of a queue.
func (r *Reader) url(ctx context.Context, arn string) (*string, *queueError) {
	name := resource(arn)
	in := &sqs.GetQueueUrlInput{QueueName: &name}
	if part := strings.Split(arn, ":"); len(part) > 4 {
		in.QueueOwnerAWSAccountId = &part[4]
	}
	out, err := r.SQS.GetQueueUrl(ctx, in)
	if err != nil {
		return nil, &queueError{"sqs:GetQueueUrl", err}
	}
	return out.QueueUrl, nil
}

// attributes reads a queue.
func (r *Reader) attributes(ctx context.Context, arn string) (map[sqstypes.QueueAttributeName]string, *queueError) {
	url, wrong := r.url(ctx, arn)
	if wrong != nil {
		return nil, wrong
	}
	out, err := r.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameVisibilityTimeout, sqstypes.QueueAttributeNameRedrivePolicy, sqstypes.QueueAttributeNameMessageRetentionPeriod,
	}})
	if err != nil {
		return nil, &queueError{"sqs:GetQueueAttributes", err}
	}
	has := map[sqstypes.QueueAttributeName]string{}
	for name, value := range out.Attributes {
		has[sqstypes.QueueAttributeName(name)] = value
	}
	return has, nil
}

// parsed returns the number in an attribute.
func parsed(text string) rules.Number {
	n, err := strconv.ParseFloat(text, 64)
	return rules.Number{Value: n, Known: err == nil}
}

// owns reports whether an ARN is in the account and Region of the function. In
// another account, a queue that is gone looks like one that may not be read.
func (f *Function) owns(arn string) bool {
	its, mine := strings.Split(arn, ":"), strings.Split(f.arn, ":")
	return len(its) > 4 && len(mine) > 4 && its[3] == mine[3] && its[4] == mine[4]
}

// onFailure returns the ARN of a failure destination, or "".
func onFailure(d *lambdatypes.DestinationConfig) string {
	if d == nil || d.OnFailure == nil {
		return ""
	}
	return aws.ToString(d.OnFailure.Destination)
}

// gone returns the name of a destination if it does not exist.
func (r *Reader) gone(ctx context.Context, f *Function, arn string) string {
	if arn == "" {
		return ""
	}
	var err error
	action := ""
	switch {
	case strings.Contains(arn, ":sqs:"):
		if _, e := r.url(ctx, arn); e != nil {
			if e.gone() && f.owns(arn) {
				return resource(arn)
			}
			err, action = e.error, e.action
		}
	case strings.Contains(arn, ":lambda:"):
		_, err = r.Lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &arn})
		if missing(err) && f.owns(arn) {
			return resource(arn)
		}
		action = "lambda:GetFunctionConfiguration"
	default:
		f.unseen("failure destination %s: whether it exists, as it is neither a queue nor a function", arn)
	}
	if err != nil {
		f.unread("the failure destination "+arn, action, err)
	}
	return ""
}
