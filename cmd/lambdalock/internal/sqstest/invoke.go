package sqstest

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// Invoked is an event that Lambda took for a function.
type Invoked struct {
	Function, Event string
	RequestID       string
}

// Invoke implements deadletter.InvokeClient.
func (f *SQS) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	return do(ctx, f, "Invoke", func() (*lambda.InvokeOutput, error) {
		if in.InvocationType != types.InvocationTypeEvent {
			f.t.Errorf("the invocation is not asynchronous: %q", in.InvocationType)
		}
		id := fmt.Sprint("request-", len(f.Invoked))
		f.Invoked = append(f.Invoked, Invoked{aws.ToString(in.FunctionName), string(in.Payload), id})
		out := &lambda.InvokeOutput{StatusCode: 202}
		awsmiddleware.SetRequestIDMetadata(&out.ResultMetadata, id)
		return out, nil
	})
}
