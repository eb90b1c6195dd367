package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3notifications"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

// newStack adds a stack with the function whose bootstrap is in the folder dir.
func newStack(scope constructs.Construct, id, dir string) awscdk.Stack {
	stack := awscdk.NewStack(scope, jsii.String(id), nil)
	uploads := awss3.NewBucket(stack, jsii.String("Uploads"), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		EnforceSSL:        jsii.Bool(true),
	})
	// Events that failed three times go here. They may be sent to the function
	// again, because completed ones are skipped.
	failed := awssqs.NewQueue(stack, jsii.String("Failed"), &awssqs.QueueProps{
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
		EnforceSSL:      jsii.Bool(true),
	})
	fn := awslambda.NewFunction(stack, jsii.String("Handler"), &awslambda.FunctionProps{
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: awslambda.Architecture_ARM_64(),
		Handler:      jsii.String("bootstrap"),
		Code:         awslambda.Code_FromAsset(jsii.String(dir), nil),
		MemorySize:   jsii.Number(256),
		// Shorter than the minute before the first retry, so that by then the lock of a
		// process that died has expired.
		Timeout:   awscdk.Duration_Seconds(jsii.Number(30)),
		OnFailure: awslambdadestinations.NewSqsDestination(failed),
		// The log group belongs to the stack, so lost leases are counted in it.
		LogGroup: awslogs.NewLogGroup(stack, jsii.String("HandlerLogs"), &awslogs.LogGroupProps{
			Retention: awslogs.RetentionDays_ONE_MONTH,
		}),
		LoggingFormat: awslambda.LoggingFormat_JSON,
	})
	uploads.AddEventNotification(awss3.EventType_OBJECT_CREATED, awss3notifications.NewLambdaDestination(fn))
	uploads.GrantRead(fn, nil)

	locks := infra.NewLockTable(stack, jsii.String("Locks"), nil)
	// The namespace of function/main.go. The permission is limited to it.
	locks.Connect(fn, &infra.ConnectOptions{Namespace: jsii.String("uploads")})
	locks.AddAlarms(&infra.AlarmsProps{Topic: awssns.NewTopic(stack, jsii.String("Alerts"), nil)})
	locks.AddDashboard(nil)
	return stack
}
