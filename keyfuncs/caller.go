package keyfuncs

import (
	"cmp"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// gatewayCaller returns the caller in events of REST and WebSocket APIs.
func gatewayCaller(authorizer map[string]any, id events.APIGatewayRequestIdentity) (string, error) {
	if claims, ok := authorizer["claims"].(map[string]any); ok {
		iss, _ := claims["iss"].(string)
		sub, _ := claims["sub"].(string)
		return subject("requestContext.authorizer.claims", iss, sub)
	}
	principal, _ := authorizer["principalId"].(string)
	return cmp.Or(principal, iamCaller(id.Caller, id.CognitoIdentityID)), nil
}

// authorizedCaller returns the caller in events of HTTP APIs.
func authorizedCaller(a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) (string, error) {
	switch {
	case a != nil && a.JWT != nil:
		return subject("requestContext.authorizer.jwt.claims", a.JWT.Claims["iss"], a.JWT.Claims["sub"])
	case a != nil && a.IAM != nil:
		return iamCaller(a.IAM.CallerID, a.IAM.CognitoIdentity.IdentityID), nil
	}
	return "", nil
}

// subject returns the user that a token names. The issuer is a URL, so it ends
// at the first space.
func subject(claims, iss, sub string) (string, error) {
	if sub == "" {
		return "", &lock.KeyError{Field: claims + ".sub", Reason: "is missing: the callers cannot be told apart without it"}
	}
	return iss + " " + sub, nil
}

// iamCaller leaves out the session. Only the id of a role has one after the
// colon: the id of a federated user begins with the account, which many users
// share.
func iamCaller(id, cognitoIdentity string) string {
	if strings.HasPrefix(id, "AROA") {
		id, _, _ = strings.Cut(id, ":")
	}
	return cmp.Or(cognitoIdentity, id)
}
