// Package services has the key functions for AWS services that invoke a
// function for work of their own: a deployment, an alarm, a trigger, a task.
// They are used like those of package keyfuncs, whose constructors combine with
// them, and whose tests cover them.
//
//   - deployments: [CloudFormation], [CodePipelineJob]
//   - CloudWatch: [CloudWatchAlarm], [SNSAlarmRecord], [CloudWatchLogs]
//   - what became of another function's invocation: [InvocationRecord]
//   - tasks: [StepFunctions], [S3BatchTask]; rules: [ConfigRule], [IoTRule]
//   - users and secrets: [CognitoUser], [SecretRotation]
package services
