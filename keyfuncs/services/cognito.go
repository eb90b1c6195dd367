package services

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// CognitoUser works on one trigger of a user at a time. Name is user pool and
// user name, which is personal data: see [keyfuncs.Hash]. There is no Event and
// no Order: Cognito needs the answer each time. So use middleware.OnHeld with
// middleware.Wait, for less than the five seconds after which Cognito asks
// again; Skip would answer with an empty event.
func CognitoUser[E awsevents.CognitoEvent](_ context.Context, e E) (lock.Key, error) {
	h := cognitoHeader(e)
	if h.UserPoolID == "" {
		return lock.Key{}, keyparts.Missing("userPoolId")
	}
	if h.UserName == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "userName", Reason: "is missing: write a key function of your own for what the trigger has, such as an attribute of the user"}
	}
	return lock.Key{Name: keyparts.Name("cognito", h.UserPoolID, h.UserName)}, nil
}

// cognitoHeader returns the header of e. Go cannot reach a field through a type
// parameter, even if all its types have it.
func cognitoHeader[E awsevents.CognitoEvent](e E) events.CognitoEventUserPoolsHeader {
	switch e := any(e).(type) {
	case events.CognitoEventUserPoolsPreSignup:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsPreAuthentication:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsPostConfirmation:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsPreTokenGen:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsPreTokenGenV2: //nolint:staticcheck // handlers of the older type need a key too
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsPreTokenGenV2_0:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsPostAuthentication:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsMigrateUser:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsDefineAuthChallenge:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsCreateAuthChallenge:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsVerifyAuthChallenge:
		return e.CognitoEventUserPoolsHeader
	case events.CognitoEventUserPoolsCustomMessage:
		return e.CognitoEventUserPoolsHeader
	}
	return any(e).(events.CognitoEventUserPoolsInboundFederation).CognitoEventUserPoolsHeader // the constraint leaves no other type
}
