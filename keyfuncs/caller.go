package keyfuncs

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// Caller names who sent an HTTP request. Name is whom the gateway
// authenticated, or "nobody". Payload is a fingerprint of the domain, and of
// the credentials by which your own code may know the caller:
// docs/GUIDE.md#who-asks lists both for each gateway. No Event, no Order.
//
// Package middleware compares Caller for a key that has an Event and no
// Payload. PayloadFrom(key, Join(byAmount, Caller)) compares a payload of your
// own as well. The error is a [*lock.NoKeyError] if a token has no sub, or if
// another gateway than E's sent the event.
func Caller[E any](ctx context.Context, e E) (lock.Key, error) { return callerOf(ctx, e, anyCookie) }

// callerOf is [Caller] with those cookies that count.
func callerOf(ctx context.Context, event any, counts func(cookie string) bool) (lock.Key, error) {
	of := requestOf
	if eventkind.IsOnlyOfCaller(ctx) {
		of = partsOf
	}
	r, err := of(event)
	if err != nil {
		return lock.Key{}, err
	}
	return r.callerKey(ctx, counts)
}

// Anonymous names no caller, for [HeaderKey] or PayloadFrom(key, Anonymous) in
// an API that anybody may use: everybody who has the key gets the answer,
// unless it sets a cookie.
func Anonymous[E any](ctx context.Context, _ E) (lock.Key, error) {
	invocation.Identified(ctx, false)
	return lock.Key{Name: "anonymous"}, nil
}

func (r request) callerKey(ctx context.Context, counts func(cookie string) bool) (lock.Key, error) {
	if r.callerErr != nil {
		return lock.Key{}, r.callerErr
	}
	k := lock.Key{Name: cmp.Or(r.caller, "nobody")}
	credentials, err := r.credentials(counts)
	if err == nil && strings.ContainsRune(k.Name+strings.Join(credentials, ""), utf8.RuneError) {
		err = &lock.NoKeyError{Field: "the caller", Reason: "contains U+FFFD, as which Go decodes broken characters, so the callers cannot be told apart"}
	}
	invocation.Identified(ctx, len(credentials) > 0 || r.caller != "" && !r.maybeOfMany())
	if r.domain != "" {
		credentials = append(credentials, "domain", r.domain)
	}
	if err == nil && len(credentials) > 0 {
		k.Payload = keyparts.Name("caller", k.Name, keyparts.Digest(keyparts.Name("credentials", credentials...)))
	}
	return k, err
}

// maybeOfMany reports whether several people may be the caller that the gateway
// named.
func (r request) maybeOfMany() bool { return r.byFunction || r.bySignature || r.byHeader }

// credentials returns what the handler may know the caller by, besides what the
// gateway did.
// The headers of a client certificate are those of a load balancer:
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/mutual-authentication.html
func (r request) credentials(counts func(cookie string) bool) ([]string, error) {
	found := slices.Clone(r.proof)
	if len(r.authorizer) > 0 {
		b, err := json.Marshal(r.authorizer) // sorts the names
		if err != nil {
			return nil, &lock.NoKeyError{Field: "requestContext.authorizer", Reason: "has no JSON form, so the callers cannot be told apart", Err: err}
		}
		if isRounded(r.authorizer) {
			return nil, &lock.NoKeyError{Field: "requestContext.authorizer", Reason: "has a number of more than 15 digits, which Go rounds, so the callers cannot be told apart: let the authorizer return it as a text, or start the handler, if it takes an events.APIGatewayV2HTTPRequest, with lambda.WithUseNumber(true)"}
		}
		found = append(found, "authorizer", string(b))
	}
	if r.caller != "" && !r.maybeOfMany() {
		return found, nil
	}
	names := []string{"Authorization", "X-Api-Key", "X-Amzn-Mtls-Clientcert", "X-Amzn-Mtls-Clientcert-Issuer", "X-Amzn-Mtls-Clientcert-Serial-Number"}
	if r.bySignature {
		names = names[1:] // a retry has another signature
	}
	for _, name := range names {
		found = append(found, named(name, r.headers, r.multi)...)
	}
	for _, c := range r.allCookies(counts) {
		found = append(found, "Cookie", c)
	}
	return append(found, r.besides...), nil
}

// isRounded reports whether decoding may have made two integers in v the same.
func isRounded(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.Abs(v) >= 1<<53
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), isRounded)
	case []any:
		return slices.ContainsFunc(v, isRounded)
	}
	return false
}

// besidesHeaders returns the credentials in events of REST and WebSocket APIs
// that are not in headers: the client certificate, and the API key, which a
// Lambda authorizer may return.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-api-key-source.html
func besidesHeaders(id events.APIGatewayRequestIdentity) []string {
	var found []string
	if c := id.ClientCert; c != nil && c.SerialNumber != "" {
		found = append(found, certificate(c.IssuerDN, c.SerialNumber))
	}
	if id.APIKey != "" {
		found = append(found, keyparts.Name("key", id.APIKey))
	}
	return found
}

func certificate(issuer, serialNumber string) string {
	return keyparts.Name("certificate", issuer, serialNumber)
}

// besidesCaller returns what an authorizer said besides that which
// gatewayCaller names the caller by. A Lambda authorizer may give its own
// values the names that a Cognito authorizer uses.
func besidesCaller(authorizer map[string]any) map[string]any {
	besides := maps.Clone(authorizer)
	delete(besides, "integrationLatency") // differs between two requests
	if _, ok := besides["claims"].(map[string]any); ok {
		delete(besides, "claims")
		delete(besides, "scopes")
	} else if namesPrincipal(besides) {
		delete(besides, "principalId")
	}
	return besides
}

// namesPrincipal reports whether the caller is the principalId that a Lambda
// authorizer returned, which may be the same for everybody.
func namesPrincipal(authorizer map[string]any) bool {
	_, claims := authorizer["claims"].(map[string]any)
	_, principal := authorizer["principalId"].(string)
	return principal && !claims
}

// gatewayCaller returns the caller in events of REST and WebSocket APIs.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-mapping-template-reference.html
// https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-lambda-authorizer-output.html
func gatewayCaller(authorizer map[string]any, id events.APIGatewayRequestIdentity) (string, error) {
	if claims, ok := authorizer["claims"].(map[string]any); ok {
		iss, _ := claims["iss"].(string)
		sub, _ := claims["sub"].(string)
		return subject("requestContext.authorizer.claims", iss, sub)
	}
	principal, _ := authorizer["principalId"].(string)
	return cmp.Or(principal, iamCaller(id.Caller, id.CognitoIdentityID)), nil
}

// authorizedCaller returns the caller in events of HTTP APIs. A JWT without
// claims says that there was no token: serverless-offline sends it, and no
// gateway does.
func authorizedCaller(a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) (string, error) {
	switch {
	case a != nil && a.JWT != nil && len(a.JWT.Claims) > 0:
		return subject("requestContext.authorizer.jwt.claims", a.JWT.Claims["iss"], a.JWT.Claims["sub"])
	case a != nil && a.IAM != nil:
		return iamCaller(a.IAM.CallerID, a.IAM.CognitoIdentity.IdentityID), nil
	}
	return "", nil
}

// isSigned reports whether IAM has checked the signature of the request, which
// may be that of a Cognito identity.
func isSigned(id events.APIGatewayRequestIdentity) bool {
	return id.Caller != "" || id.CognitoIdentityID != ""
}

// namesSigner reports whether the caller is the IAM user or role that signed
// the request.
func namesSigner(id events.APIGatewayRequestIdentity) bool {
	return id.Caller != "" && id.CognitoIdentityID == ""
}

// subject returns the user that a token names. The issuer is a URL, so it ends
// at the first space.
func subject(claims, iss, sub string) (string, error) {
	if sub == "" {
		return "", &lock.NoKeyError{Field: claims + ".sub", Reason: "is missing: the callers cannot be told apart without it: let the issuer of the tokens send it, or name the caller in the Payload of a key of your own, or in keyfuncs.HeaderKey"}
	}
	return iss + " " + sub, nil
}

// iamCaller leaves out the session. Only the id of a role has one after the
// colon: the id of a federated user begins with the account, which many users
// share.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#principaltable
func iamCaller(id, cognitoIdentity string) string {
	if strings.HasPrefix(id, "AROA") {
		id, _, _ = strings.Cut(id, ":")
	}
	return cmp.Or(cognitoIdentity, id)
}
