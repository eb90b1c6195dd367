// Package awsevents has the types of AWS events that aws-lambda-go lacks, and
// the constraints of the generic key functions in package services.
package awsevents

import "github.com/aws/aws-lambda-go/events"

// S3BatchEvent is an event of S3 Batch Operations with invocation schema 1.0 or
// 2.0.
type S3BatchEvent interface {
	events.S3BatchJobEvent | events.S3BatchJobEventV2
}

// CognitoEvent is an event of any trigger of a Cognito user pool.
type CognitoEvent interface {
	events.CognitoEventUserPoolsPreSignup |
		events.CognitoEventUserPoolsPreAuthentication |
		events.CognitoEventUserPoolsPostConfirmation |
		events.CognitoEventUserPoolsPreTokenGen |
		events.CognitoEventUserPoolsPreTokenGenV2 | //nolint:staticcheck // handlers of the older type need a key too
		events.CognitoEventUserPoolsPreTokenGenV2_0 |
		events.CognitoEventUserPoolsPostAuthentication |
		events.CognitoEventUserPoolsMigrateUser |
		events.CognitoEventUserPoolsDefineAuthChallenge |
		events.CognitoEventUserPoolsCreateAuthChallenge |
		events.CognitoEventUserPoolsVerifyAuthChallenge |
		events.CognitoEventUserPoolsCustomMessage |
		events.CognitoEventUserPoolsInboundFederation
}
