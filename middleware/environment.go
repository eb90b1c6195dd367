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

// onDemand reports whether Lambda gives the process one invocation at a time.
// What runs beyond its deadline is ended according to the documentation, and
// runs on according to the teams of the runtimes, which reject its late answer:
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
// https://github.com/aws/aws-lambda-rust-runtime/pull/1159
// https://github.com/aws/aws-lambda-dotnet/pull/2508
//
// Managed instances let it run on according to both. There aws-lambda-go 1.55
// takes no further invocations if the answer of one of them is rejected.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html
func onDemand() bool {
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
