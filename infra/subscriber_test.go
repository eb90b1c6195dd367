package infra_test

import (
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

// TestSubscriber: a subscriber of a Custom Event Bus is found by the type of
// its resource, whatever the CDK knows of it.
func TestSubscriber(t *testing.T) {
	subscriber := func(target func(awslambda.Function) *string, lambda, others object) buildFunc {
		return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			properties := object{"InvokeConfiguration": object{"TargetArn": target(fn), "LambdaParameters": lambda}}
			for name, value := range others {
				properties[name] = value
			}
			awscdk.NewCfnResource(stack, s("Subscriber"), &awscdk.CfnResourceProps{Type: s("AWS::EventsV2::Subscriber"), Properties: &properties})
		}
	}
	arn := func(fn awslambda.Function) *string { return fn.FunctionArn() }
	alias := func(fn awslambda.Function) *string { return fn.AddAlias(s("live"), nil).FunctionArn() }
	other := func(awslambda.Function) *string { return s("arn:aws:lambda:eu-west-1:111111111111:function:other") }
	kept := object{"OnFailureConfiguration": object{"Arn": "arn:aws:sqs:eu-west-1:111111111111:failed"}}
	waits := object{"InvocationType": "REQUEST_RESPONSE"}
	slow := &awslambda.FunctionProps{Timeout: awscdk.Duration_Seconds(jsii.Number(60))}
	for name, c := range map[string]checkCase{
		"good":             {build: subscriber(arn, waits, kept)},
		"another function": {build: subscriber(other, waits, nil)},
		"drops events":     {build: subscriber(arn, waits, nil), want: []string{"its subscriber Test/Subscriber of a Custom Event Bus has no OnFailureConfiguration"}},
		"of an alias":      {build: subscriber(alias, waits, nil), want: []string{"has no OnFailureConfiguration"}},
		"asynchronous": {
			build: subscriber(arn, object{"InvocationType": "EVENT"}, kept),
			want:  []string{"asynchronously (a Custom Event Bus) and has neither a dead-letter queue nor a failure destination"},
		},
		"waits less than the function": {fn: slow, build: subscriber(arn, waits, kept), want: []string{"waits for an answer for 30 s"}},
		"no retries": {
			build: subscriber(arn, waits, object{"OnFailureConfiguration": kept["OnFailureConfiguration"], "RetryPolicy": object{"MaxRetryAttempts": 0}}),
			want:  []string{"has MaxRetryAttempts 0"},
		},
		"as the construct names its properties": {fn: slow, build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			awscdk.NewCfnResource(stack, s("Subscriber"), &awscdk.CfnResourceProps{Type: s("AWS::EventsV2::Subscriber"), Properties: &map[string]any{
				"invokeConfiguration":    object{"targetArn": fn.FunctionArn(), "lambdaParameters": object{"invocationType": "REQUEST_RESPONSE", "invocationTimeoutSeconds": "10"}},
				"onFailureConfiguration": object{"arn": "arn:aws:sqs:eu-west-1:111111111111:failed"}, "retryPolicy": object{"maxEventAgeInSeconds": 60},
			}})
		}, want: []string{"has MaxEventAgeInSeconds 60", "waits for an answer for 10 s"}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}
