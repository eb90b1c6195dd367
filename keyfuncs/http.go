package keyfuncs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// APIGatewayREST handles each Idempotency-Key of a REST API once, or of an HTTP API
// with payload format 1.0. Event is the value of that header, which the client makes
// up for a request and sends again with its retries. Name is the API, the stage, the
// method, the path, the caller and that value: the same value in another place, or
// from somebody else, is another request. No Order.
//
// The path counts, not the route: a greedy route such as /{proxy+} stands for
// everything. The caller counts because clients choose their keys, and none may be
// shown the replayed answer of another. It is what API Gateway authenticated:
//
//   - the claims iss and sub of a token that was checked by a Cognito or JWT authorizer
//   - the principalId that a Lambda authorizer returns, which must not be the same for all
//   - with IAM, the Cognito identity, else the id of the user or role. A role's session
//     does not count, because a retry may come in another one: whoever assumes a role
//     is one caller
//   - otherwise nobody. An API key or a client certificate does not count
//
// Put what else tells callers apart before the name with [Join].
//
// The error is a [*lock.KeyError] when the header is missing or empty, has several
// different values, is longer than 255 bytes or holds control characters, when a
// token has no sub, and when the event comes from another source. Client is set for
// what is wrong with the header. Every request needs
// the header; what may come without it, like a preflight request or a health check,
// belongs to another handler.
//
// Sources: https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html#api-gateway-simple-proxy-for-lambda-input-format,
// https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-mapping-template-reference.html,
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#principaltable,
// https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/.
func APIGatewayREST(_ context.Context, e events.APIGatewayProxyRequest) (lock.Key, error) {
	c := e.RequestContext
	caller, err := gatewayCaller(c.Authorizer, c.Identity)
	if err != nil {
		return lock.Key{}, err
	}
	return request{
		api: part{"requestContext.apiId", c.APIID}, stage: c.Stage,
		method: part{"httpMethod", e.HTTPMethod}, path: part{"path", e.Path},
		caller: caller, headers: e.Headers, multi: e.MultiValueHeaders,
	}.key()
}

// APIGatewayHTTP is [APIGatewayREST] for an HTTP API with payload format 2.0, which is
// the default. What a Lambda authorizer returns here has no field that names the
// caller: add one of yours with [Join]. Several values of the header arrive as one,
// joined by commas, and count as one.
//
// Sources: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html#http-api-develop-integrations-lambda.proxy-format,
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-lambda-authorizer.html.
func APIGatewayHTTP(_ context.Context, e events.APIGatewayV2HTTPRequest) (lock.Key, error) {
	if e.Version != "" && e.Version != "2.0" {
		return lock.Key{}, &lock.KeyError{Field: "version", Reason: fmt.Sprintf("is %q, not 2.0; for payload format 1.0 use APIGatewayREST", e.Version)}
	}
	c := e.RequestContext
	caller, err := authorizedCaller(c.Authorizer)
	if err != nil {
		return lock.Key{}, err
	}
	return request{
		api: part{"requestContext.apiId", c.APIID}, stage: c.Stage,
		method: part{"requestContext.http.method", c.HTTP.Method}, path: part{"rawPath", e.RawPath},
		caller: caller, headers: e.Headers,
	}.key()
}

// APIGatewayWebSocket is [APIGatewayREST] for the request that opens a connection to a
// WebSocket API; the event type and the route stand for method and path. What follows on
// the connection has no headers, and is a [*lock.KeyError]: take the key of a
// message from its body with [Body].
//
// Sources: https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-route-keys-connect-disconnect.html,
// https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-mapping-template-reference.html.
func APIGatewayWebSocket(_ context.Context, e events.APIGatewayWebsocketProxyRequest) (lock.Key, error) {
	c := e.RequestContext
	if c.EventType != "" && c.EventType != "CONNECT" {
		return lock.Key{}, &lock.KeyError{Field: "requestContext.eventType", Reason: "is not CONNECT: a message has no headers; take its key from the body with keyfuncs.Body"}
	}
	authorizer, _ := c.Authorizer.(map[string]any)
	caller, err := gatewayCaller(authorizer, c.Identity)
	if err != nil {
		return lock.Key{}, err
	}
	return request{
		api: part{"requestContext.apiId", c.APIID}, stage: c.Stage,
		method: part{"requestContext.eventType", c.EventType}, path: part{"requestContext.routeKey", c.RouteKey},
		caller: caller, headers: e.Headers, multi: e.MultiValueHeaders,
	}.key()
}

// ALB is [APIGatewayREST] for an Application Load Balancer, with or without multi-value
// headers; the target group stands for the API. The caller is the header
// x-amzn-oidc-identity, which the load balancer sets when it authenticates users. If it
// does not, a client may send one, and only sets itself apart.
//
// Sources: https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html,
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/listener-authenticate-users.html#user-claims-encoding.
func ALB(_ context.Context, e events.ALBTargetGroupRequest) (lock.Key, error) {
	return request{
		api:    part{"requestContext.elb.targetGroupArn", e.RequestContext.ELB.TargetGroupArn},
		method: part{"httpMethod", e.HTTPMethod}, path: part{"path", e.Path},
		caller:  strings.Join(values("x-amzn-oidc-identity", e.Headers, e.MultiValueHeaders), " "),
		headers: e.Headers, multi: e.MultiValueHeaders,
	}.key()
}

// FunctionURL is [APIGatewayREST] for a Function URL. The caller is the IAM user or role;
// the users of a Cognito identity pool share one, and nothing in the event tells them
// apart. Several values of the header count as one, as with [APIGatewayHTTP].
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads,
// https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html.
func FunctionURL(_ context.Context, e events.LambdaFunctionURLRequest) (lock.Key, error) {
	c := e.RequestContext
	var caller string
	if c.Authorizer != nil && c.Authorizer.IAM != nil {
		caller = iamCaller(c.Authorizer.IAM.CallerID, "")
	}
	return request{
		api:    part{"requestContext.apiId", c.APIID},
		method: part{"requestContext.http.method", c.HTTP.Method}, path: part{"rawPath", e.RawPath},
		caller: caller, headers: e.Headers,
	}.key()
}

// request is what the gateways' events have in common.
type request struct {
	api, method, path part
	stage, caller     string // empty: none
	headers           map[string]string
	multi             map[string][]string
}

// part is a field that every event of the source has.
type part struct{ field, value string }

func (r request) key() (lock.Key, error) {
	for _, p := range []part{r.api, r.method, r.path} {
		if p.value == "" {
			return lock.Key{}, &lock.KeyError{Field: p.field, Reason: "is missing: this is an event of another source"}
		}
	}
	key, err := idempotencyKey(values("Idempotency-Key", r.headers, r.multi))
	if err != nil {
		return lock.Key{}, err
	}
	return once("http", key, r.api.value, r.stage, r.method.value, r.path.value, r.caller), nil
}

func idempotencyKey(values []string) (string, error) {
	reason := ""
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		reason = "is missing: send a value that is new for every request and the same in its retries"
	case len(values) > 1:
		reason = "has several different values: send one"
	case len(values[0]) > 255:
		reason = "is longer than 255 bytes"
	// What is not UTF-8 became a RuneError in the JSON of the event, and different values the same.
	case strings.ContainsFunc(values[0], func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }):
		reason = "holds control characters, or is not UTF-8"
	default:
		return values[0], nil
	}
	return "", &lock.KeyError{Field: "headers[Idempotency-Key]", Reason: reason, Client: true}
}

// values are the different values of a header, in an order that does not depend on the
// maps. REST APIs send each value in both, load balancers in one or the other.
func values(name string, headers map[string]string, multi map[string][]string) []string {
	var found []string
	for n, v := range headers {
		if strings.EqualFold(n, name) {
			found = append(found, strings.Trim(v, " \t"))
		}
	}
	for n, vs := range multi {
		for _, v := range vs {
			if strings.EqualFold(n, name) {
				found = append(found, strings.Trim(v, " \t"))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// gatewayCaller is the caller in events of REST and WebSocket APIs.
func gatewayCaller(authorizer map[string]any, id events.APIGatewayRequestIdentity) (string, error) {
	if claims, ok := authorizer["claims"].(map[string]any); ok {
		iss, _ := claims["iss"].(string)
		sub, _ := claims["sub"].(string)
		return subject("requestContext.authorizer.claims", iss, sub)
	}
	principal, _ := authorizer["principalId"].(string)
	return cmp.Or(principal, iamCaller(id.Caller, id.CognitoIdentityID)), nil
}

// authorizedCaller is the caller in events of HTTP APIs.
func authorizedCaller(a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) (string, error) {
	switch {
	case a != nil && a.JWT != nil:
		return subject("requestContext.authorizer.jwt.claims", a.JWT.Claims["iss"], a.JWT.Claims["sub"])
	case a != nil && a.IAM != nil:
		return iamCaller(a.IAM.CallerID, a.IAM.CognitoIdentity.IdentityID), nil
	}
	return "", nil
}

// subject is whom a token names. An issuer is a URL, so the first space ends it.
func subject(claims, iss, sub string) (string, error) {
	if sub == "" {
		return "", &lock.KeyError{Field: claims + ".sub", Reason: "is missing: the callers cannot be told apart without it"}
	}
	return iss + " " + sub, nil
}

// iamCaller leaves out the session, which only ids of roles are followed by: those of
// federated users begin with their account, which they share.
func iamCaller(id, cognitoIdentity string) string {
	if strings.HasPrefix(id, "AROA") {
		id, _, _ = strings.Cut(id, ":")
	}
	return cmp.Or(cognitoIdentity, id)
}
