package infra_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

func TestFailureDestination(t *testing.T) {
	invokedBy := func(principal string) buildFunc {
		return func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddPermission(s("Permission"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s(principal), nil)})
		}
	}
	cases := map[string]checkCase{
		"API Gateway": {build: invokedBy("apigateway.amazonaws.com")},
		"not invoked": {},
		"subscription": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			awssns.NewTopic(stack, s("Topic"), nil).AddSubscription(awssnssubscriptions.NewLambdaSubscription(fn, nil))
		}, want: []string{"asynchronously (sns) and has neither a dead-letter queue nor a failure destination"}},
		"alias": {build: func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddAlias(s("live"), nil).AddPermission(s("Permission"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
		}, want: []string{"asynchronously (s3)"}},
		"another function": {build: func(stack awscdk.Stack, _ awslambda.Function, locks infra.LockTable) {
			invokedBy("s3.amazonaws.com")(stack, newFunction(stack, "Other", nil), locks)
		}},
		"dead-letter queue": {fn: &awslambda.FunctionProps{DeadLetterQueueEnabled: jsii.Bool(true)}, build: invokedBy("s3.amazonaws.com")},
		"failure destination": {build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
			invokedBy("s3.amazonaws.com")(stack, fn, locks)
			fn.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{OnFailure: awslambdadestinations.NewSqsDestination(awssqs.NewQueue(stack, s("Failed"), nil))})
		}},
		"success destination only": {build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
			invokedBy("s3.amazonaws.com")(stack, fn, locks)
			fn.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{OnSuccess: awslambdadestinations.NewSqsDestination(awssqs.NewQueue(stack, s("Done"), nil))})
		}, want: []string{"asynchronously (s3)"}},
	}
	for name, c := range destinationsOfAliases() {
		cases[name] = c
	}
	cases["logs of a Region"] = checkCase{build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
		invokedBy("logs."+*stack.Region()+".amazonaws.com")(stack, fn, locks)
	}, want: []string{"asynchronously (logs)"}}
	cases["two services"] = checkCase{build: func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
		for i, principal := range []string{"s3.amazonaws.com", "sns.amazonaws.com", "s3.amazonaws.com"} {
			awslambda.NewCfnPermission(fn, s(fmt.Sprint("P", i)), &awslambda.CfnPermissionProps{
				Action: s("lambda:InvokeFunction"), FunctionName: fn.FunctionArn(), Principal: s(principal),
			})
		}
	}, want: []string{"asynchronously (s3, sns)"}}
	cases["part of a name"] = checkCase{build: invokedBy("lambda.amazonaws.com")}
	cases["more than a name"] = checkCase{build: invokedBy("iotevents.amazonaws.com")}
	for _, service := range []string{"s3", "sns", "events", "scheduler", "iot", "logs", "lambda.alarms.cloudwatch", "ses", "codecommit", "config", "cloudformation"} {
		cases[service] = checkCase{build: invokedBy(service + ".amazonaws.com"), want: []string{"asynchronously (" + service + ")"}}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

// TestAsyncRetries: a held lock fails an attempt, so one attempt is too few,
// and so are three that all come while a dead process still holds the lock.
func TestAsyncRetries(t *testing.T) {
	invoke := func(fn awslambda.IFunction) {
		fn.AddPermission(s("Permission"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
	}
	props := func(timeout, retries float64) *awslambda.FunctionProps {
		return &awslambda.FunctionProps{
			DeadLetterQueueEnabled: jsii.Bool(true), Timeout: awscdk.Duration_Seconds(jsii.Number(timeout)), RetryAttempts: jsii.Number(retries),
		}
	}
	invoked := func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) { invoke(fn) }
	const late, never = "has a timeout of %v s: if its process dies, its lock is held until that time, but Lambda's last attempt comes after 180 s", "asynchronously (s3) with RetryAttempts 0"
	for name, c := range map[string]checkCase{
		"172 s":            {fn: props(172, 2), build: invoked},
		"173 s":            {fn: props(173, 2), build: invoked, want: []string{fmt.Sprintf(late, 173)}},
		"15 minutes":       {fn: props(900, 2), build: invoked, want: []string{fmt.Sprintf(late, 900)}},
		"one retry":        {fn: props(53, 1), build: invoked, want: []string{"RetryAttempts 1: an event that finds its lock held twice", "last attempt comes after 60 s"}},
		"not asynchronous": {fn: props(900, 0)},
		"no retries":       {fn: props(10, 0), build: invoked, want: []string{never}},
		"age of 60 s":      {fn: &awslambda.FunctionProps{DeadLetterQueueEnabled: jsii.Bool(true), MaxEventAge: awscdk.Duration_Seconds(jsii.Number(60))}, build: invoked, want: []string{"with a MaxEventAge of 60 s"}},
		"age of 10 min":    {fn: &awslambda.FunctionProps{DeadLetterQueueEnabled: jsii.Bool(true), MaxEventAge: awscdk.Duration_Minutes(jsii.Number(10))}, build: invoked},
		"no retries of an alias": {fn: props(10, 2), build: func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			invoke(awslambda.NewAlias(fn, s("live"), &awslambda.AliasProps{AliasName: s("live"), Version: fn.CurrentVersion(), RetryAttempts: jsii.Number(0)}))
		}, want: []string{"asynchronously (s3) through Test/Fn/live/Resource with RetryAttempts 0"}},
		"no retries of another alias": {fn: props(10, 2), build: func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			awslambda.NewAlias(fn, s("live"), &awslambda.AliasProps{AliasName: s("live"), Version: fn.CurrentVersion(), RetryAttempts: jsii.Number(0)})
			invoke(fn)
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

// destinationsOfAliases returns the cases about aliases and versions. A failure
// destination applies only to the function, alias or version that it is set on.
func destinationsOfAliases() map[string]checkCase {
	invoke := func(fn awslambda.IFunction) {
		fn.AddPermission(s("Permission"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
	}
	keep := func(stack awscdk.Stack) *awslambda.EventInvokeConfigOptions {
		return &awslambda.EventInvokeConfigOptions{OnFailure: awslambdadestinations.NewSqsDestination(awssqs.NewQueue(stack, s("Failed"), nil))}
	}
	alias := func(fn awslambda.Function, name string, keep *awslambda.EventInvokeConfigOptions) awslambda.Alias {
		props := &awslambda.AliasProps{AliasName: s(name), Version: fn.CurrentVersion()}
		if keep != nil {
			props.OnFailure = keep.OnFailure
		}
		return awslambda.NewAlias(fn, s(name), props)
	}
	configure := func(stack awscdk.Stack, fn awslambda.Function, qualifier string) {
		awslambda.NewCfnEventInvokeConfig(stack, s("Config"), &awslambda.CfnEventInvokeConfigProps{
			FunctionName: fn.FunctionName(), Qualifier: s(qualifier),
			DestinationConfig: object{"onFailure": object{"destination": "arn:aws:sqs:eu-west-1:111111111111:failed"}},
		})
	}
	const says = "asynchronously (s3)"
	return map[string]checkCase{
		"on the alias": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			invoke(alias(fn, "live", keep(stack)))
		}},
		"on another alias": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			alias(fn, "test", keep(stack))
			invoke(alias(fn, "live", nil))
		}, want: []string{says + " through Test/Fn/live/Resource"}},
		"on the function, not on the alias": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.ConfigureAsyncInvoke(keep(stack))
			invoke(alias(fn, "live", nil))
		}, want: []string{says + " through Test/Fn/live/Resource"}},
		"on the alias, not on the function": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			alias(fn, "live", keep(stack))
			invoke(fn)
		}, want: []string{says + " and has neither"}},
		"on the version": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.CurrentVersion().ConfigureAsyncInvoke(keep(stack))
			invoke(fn.CurrentVersion())
		}},
		"on the version, not on the alias": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.CurrentVersion().ConfigureAsyncInvoke(keep(stack))
			invoke(alias(fn, "live", nil))
		}, want: []string{says + " through Test/Fn/live/Resource"}},
		"on the alias by its name": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			invoke(alias(fn, "live", nil))
			configure(stack, fn, "live")
		}},
		"on the alias by its name, shared with other functions": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			for i := range 8 {
				alias(newFunction(stack, fmt.Sprint("Other", i), nil), "live", nil)
			}
			invoke(alias(fn, "live", nil))
			configure(stack, fn, "live")
		}},
		"on another alias by its name": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			invoke(alias(fn, "live", nil))
			configure(stack, fn, "test")
		}, want: []string{says}},
		"on another function's alias with the same name": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			other := newFunction(stack, "Other", nil)
			alias(other, "live", nil)
			invoke(alias(fn, "live", nil))
			configure(stack, other, "live")
		}, want: []string{says}},
		"alias and function": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			invoke(alias(fn, "live", nil))
			invoke(fn)
		}, want: []string{says + " and has neither", says + " through Test/Fn/live/Resource"}},
	}
}
