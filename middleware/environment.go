package middleware

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

// inLambda reports whether the process runs in Lambda. The runtime takes its
// events from the address in this variable.
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
func inLambda() bool { return os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// killedAtDeadline reports whether the platform kills the process at the
// deadline. Classic Lambda does. Managed instances report a deadline, but let
// the code run on.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html
func killedAtDeadline() bool {
	return lambdacontext.MaxConcurrency() == 1 && os.Getenv("AWS_LAMBDA_INITIALIZATION_TYPE") != "lambda-managed-instances"
}

// holder returns a function that describes the holder of a lock by what a
// person needs to find the logs of its invocation: function, request and log
// stream, or the process outside Lambda.
func holder() func(context.Context) string {
	if lambdacontext.FunctionName == "" {
		process := invocation.Process()
		return func(context.Context) string { return process }
	}
	return func(ctx context.Context) string {
		request := "unknown"
		if lc, ok := lambdacontext.FromContext(ctx); ok {
			request = lc.AwsRequestID
		}
		return lambdacontext.FunctionName + " request " + request + " log " + lambdacontext.LogStreamName
	}
}
