package keyfuncs

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// IdempotencyKey handles each Idempotency-Key of an HTTP API once. Event is the
// value of that header, which the client makes up for a request and sends again
// with its retries. Name is the API, the stage, the caller and that value: the
// same value from another caller is another request. No Order.
//
// Payload is a fingerprint of the method, the path, the query and the body. A
// client that uses its key for another request gets a [*lock.MismatchError],
// which package middleware answers with status 422. The path counts, not the
// route, because a greedy route such as /{proxy+} stands for everything. The
// order of the query's parameters does not count, nor whether the gateway
// encoded the body as base64.
//
// The caller counts because clients choose their keys, and nobody may be shown
// the replayed answer of somebody else. The caller is what the gateway
// authenticated:
//
//   - the claims iss and sub of a token that a Cognito or JWT authorizer
//     checked
//   - the principalId that a Lambda authorizer of a REST or WebSocket API
//     returns, which must not be the same for everybody. In an HTTP API what it
//     returns has no field that names the caller: add one with [Join]
//   - with IAM, the Cognito identity, else the id of the user or role. The
//     session of a role does not count, because a retry may come in another
//     one: everybody who assumes a role is one caller. Behind a Function URL,
//     the users of a Cognito identity pool are one caller too, because nothing
//     in the event tells them apart
//   - for a load balancer that authenticates users, its header
//     x-amzn-oidc-identity. If it does not, a client may send this header, and
//     only sets itself apart
//   - otherwise nobody. An API key or a client certificate does not count
//
// If something else tells callers apart, add it with [Join].
//
// A load balancer has a target group instead of an API. A WebSocket API has
// headers only in the request that opens a connection; event type and route
// take the place of method and path. Take the key of a message that follows
// from its body, with [HTTPBody].
//
// The error is a [*lock.KeyError] if the header is missing or empty, has
// several different values, is longer than 255 bytes or contains control
// characters, if a token has no sub, if the body is not base64 although the
// event says so, and if the event comes from another source. Client is set for
// what is wrong with the header, and Missing if it is absent, whatever the
// token says. A key function for HTTP APIs also takes events of Function URLs,
// whose form is the same. HTTP APIs and
// Function URLs join several values with commas, and these count as one. Every
// request needs the header: use [Optional] for requests that may come without
// it, like a GET, a preflight request or a health check.
//
// Sources: https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html#api-gateway-simple-proxy-for-lambda-input-format,
// https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-mapping-template-reference.html,
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#principaltable,
// https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/,
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html#http-api-develop-integrations-lambda.proxy-format,
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-lambda-authorizer.html,
// https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-route-keys-connect-disconnect.html,
// https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-mapping-template-reference.html,
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html,
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/listener-authenticate-users.html#user-claims-encoding,
// https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads,
// https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html.
func IdempotencyKey[E awsevents.HTTPRequest](_ context.Context, e E) (lock.Key, error) {
	r, err := requestOf(e)
	if err != nil {
		return lock.Key{}, err
	}
	return r.key(bodyOf(e))
}

// request is what the events of all gateways have in common.
type request struct {
	api, method, path part
	stage, caller     string // empty: none
	callerErr         error  // why there is no caller, which concerns only requests that need one
	query             string // in an order that does not depend on maps
	headers           map[string]string
	multi             map[string][]string
}

func requestOf(event any) (request, error) {
	switch e := event.(type) {
	case events.APIGatewayProxyRequest:
		return restRequest(e), nil
	case events.APIGatewayV2HTTPRequest:
		return httpRequest(e)
	case events.APIGatewayWebsocketProxyRequest:
		return webSocketRequest(e)
	case events.ALBTargetGroupRequest:
		return request{
			api:    part{"requestContext.elb.targetGroupArn", e.RequestContext.ELB.TargetGroupArn},
			method: part{"httpMethod", e.HTTPMethod}, path: part{"path", e.Path},
			query:   canonicalQuery(e.QueryStringParameters, e.MultiValueQueryStringParameters),
			caller:  strings.Join(values("x-amzn-oidc-identity", e.Headers, e.MultiValueHeaders), " "),
			headers: e.Headers, multi: e.MultiValueHeaders,
		}, nil
	}
	return urlRequest(event.(events.LambdaFunctionURLRequest)) // the constraint leaves no other type
}

// restRequest returns the request of a REST API, or of an HTTP API with payload
// format 1.0.
func restRequest(e events.APIGatewayProxyRequest) request {
	c := e.RequestContext
	caller, err := gatewayCaller(c.Authorizer, c.Identity)
	return request{
		api: part{"requestContext.apiId", c.APIID}, stage: c.Stage,
		method: part{"httpMethod", e.HTTPMethod}, path: part{"path", e.Path},
		query:  canonicalQuery(e.QueryStringParameters, e.MultiValueQueryStringParameters),
		caller: caller, callerErr: err, headers: e.Headers, multi: e.MultiValueHeaders,
	}
}

func httpRequest(e events.APIGatewayV2HTTPRequest) (request, error) {
	if e.Version != "" && e.Version != "2.0" {
		return request{}, &lock.KeyError{Field: "version", Reason: fmt.Sprintf("is %q, not 2.0: payload format 1.0 needs IdempotencyKey[events.APIGatewayProxyRequest]", e.Version)}
	}
	c := e.RequestContext
	caller, err := authorizedCaller(c.Authorizer)
	return request{
		api: part{"requestContext.apiId", c.APIID}, stage: c.Stage,
		method: part{"requestContext.http.method", c.HTTP.Method}, path: part{"rawPath", e.RawPath},
		query: sortedQuery(e.RawQueryString), caller: caller, callerErr: err, headers: e.Headers,
	}, nil
}

func webSocketRequest(e events.APIGatewayWebsocketProxyRequest) (request, error) {
	c := e.RequestContext
	if c.EventType != "" && c.EventType != "CONNECT" {
		return request{}, &lock.KeyError{Field: "requestContext.eventType", Reason: "is not CONNECT: a message has no headers; take its key from the body with keyfuncs.HTTPBody"}
	}
	authorizer, _ := c.Authorizer.(map[string]any)
	caller, err := gatewayCaller(authorizer, c.Identity)
	return request{
		api: part{"requestContext.apiId", c.APIID}, stage: c.Stage,
		method: part{"requestContext.eventType", c.EventType}, path: part{"requestContext.routeKey", c.RouteKey},
		query:  canonicalQuery(e.QueryStringParameters, e.MultiValueQueryStringParameters),
		caller: caller, callerErr: err, headers: e.Headers, multi: e.MultiValueHeaders,
	}, nil
}

// urlRequest refuses events of HTTP APIs, whose form is the same but for the
// authorizers: without these, callers would not be told apart.
func urlRequest(e events.LambdaFunctionURLRequest) (request, error) {
	c := e.RequestContext
	if c.DomainName != "" && !strings.Contains(c.DomainName, ".lambda-url.") {
		return request{}, &lock.KeyError{Field: "requestContext.domainName", Reason: "is not that of a Function URL: an HTTP API needs IdempotencyKey[events.APIGatewayV2HTTPRequest]"}
	}
	var caller string
	if c.Authorizer != nil && c.Authorizer.IAM != nil {
		caller = iamCaller(c.Authorizer.IAM.CallerID, "")
	}
	return request{
		api:    part{"requestContext.apiId", c.APIID},
		method: part{"requestContext.http.method", c.HTTP.Method}, path: part{"rawPath", e.RawPath},
		query: sortedQuery(e.RawQueryString), caller: caller, headers: e.Headers,
	}, nil
}

// key returns the key of a request with that body.
func (r request) key(body requestBody) (lock.Key, error) {
	for _, p := range []part{r.api, r.method, r.path} {
		if p.value == "" {
			return lock.Key{}, &lock.KeyError{Field: p.field, Reason: "is missing: this is an event of another source"}
		}
	}
	key, err := headerValue(values("Idempotency-Key", r.headers, r.multi))
	if err != nil {
		return lock.Key{}, err
	}
	if r.callerErr != nil {
		return lock.Key{}, r.callerErr
	}
	text, err := body.decoded()
	if err != nil {
		return lock.Key{}, err
	}
	k := once("http", key, r.api.value, r.stage, r.caller)
	k.Payload = named("request", r.method.value, r.path.value, r.query, digest(text))
	return k, nil
}

// canonicalQuery returns the parameters of a query, of which a load balancer
// fills only one of the maps.
func canonicalQuery(single map[string]string, multi map[string][]string) string {
	query := url.Values{}
	for name, value := range single {
		query[name] = []string{value}
	}
	maps.Copy(query, multi)
	return query.Encode()
}

// sortedQuery returns a query with its parameters sorted by name. One that
// cannot be parsed stays unchanged.
func sortedQuery(raw string) string {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return raw
	}
	return query.Encode()
}

func headerValue(values []string) (string, error) {
	const send = "send a value that is new for every request and the same in its retries"
	reason := ""
	switch {
	case len(values) == 0:
		reason = "is missing: " + send
	case len(values) == 1 && values[0] == "":
		reason = "is empty: " + send
	case len(values) > 1:
		reason = "has several different values: send one"
	case len(values[0]) > 255:
		reason = "is longer than 255 bytes"
	// Bytes that are not UTF-8 became a RuneError in the JSON of the event, so
	// different values may look the same.
	case strings.ContainsFunc(values[0], func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }):
		reason = "contains control characters, or is not UTF-8"
	default:
		return values[0], nil
	}
	return "", &lock.KeyError{Field: "headers[Idempotency-Key]", Reason: reason, Client: true, Missing: len(values) == 0}
}

// values returns the different values of a header, in an order that does not
// depend on the maps. REST APIs send each value in both maps, load balancers in
// one.
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
