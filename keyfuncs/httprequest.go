package keyfuncs

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// field is a field that every event of a gateway has.
type field struct{ name, value string }

// request is what the events of all gateways have in common.
type request struct {
	api, method, path field
	stage             string // empty: none
	query             string // in an order that does not depend on maps
	headers           map[string]string
	multi             map[string][]string
	keyErr            error  // why it has no headers to take the key from
	domain            string // that the client has asked; empty: unknown

	caller      string         // whom the gateway authenticated; empty: nobody
	signed      bool           // IAM has checked a signature
	byFunction  bool           // a Lambda authorizer named the caller
	bySignature bool           // IAM named the caller, who may be a proxy of many
	byHeader    bool           // a header named the caller, which the client may have sent
	callerErr   error          // why there is no caller, which concerns only requests that need one
	authorizer  map[string]any // what a Lambda authorizer returned besides
	proof       []string       // credentials that only the gateway could have put into the headers
	cookies     []string       // that the gateway took out of the headers
	besides     []string       // credentials that are not in headers
	body        requestBody
}

// requestIn returns the event of a gateway that an event is, points to or
// embeds.
func requestIn(event any) (any, error) {
	found, ok := eventkind.RequestIn(event)
	if !ok {
		return nil, &lock.NoKeyError{Field: "the event", Reason: fmt.Sprintf("is a %T without an HTTP request: use the event type of the gateway, or one that embeds it", event)}
	}
	return found, nil
}

// requestOf returns what is in the event of a gateway, or in the one that an
// event points to or embeds. It refuses the event of another gateway, whose
// callers would not be told apart.
func requestOf(event any) (request, error) {
	r, err := partsOf(event)
	if err == nil && r.wasSent() {
		err = r.whole()
	}
	return r, err
}

// wasSent reports whether a gateway has sent the request. One that a test
// builds need not look like it.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-request-tracing.html
func (r request) wasSent() bool {
	return r.api.value != "" || len(values("X-Amzn-Trace-Id", r.headers, r.multi)) > 0
}

// partsOf is requestOf for an event of which some parts may be missing.
func partsOf(event any) (request, error) {
	found, err := requestIn(event)
	if err != nil {
		return request{}, err
	}
	r, err := requestFrom(found)
	if r.signed {
		r.query = unsigned(r.query)
	}
	r.body = bodyOf(found)
	return r, err
}

func requestFrom(found any) (request, error) {
	switch e := found.(type) {
	case events.APIGatewayProxyRequest:
		return restRequest(e), nil
	case events.APIGatewayV2HTTPRequest:
		return httpRequest(e)
	case events.APIGatewayWebsocketProxyRequest:
		return webSocketRequest(e), nil
	case events.ALBTargetGroupRequest:
		proof := named(accessToken, e.Headers, e.MultiValueHeaders)
		return request{
			api:    field{"requestContext.elb.targetGroupArn", e.RequestContext.ELB.TargetGroupArn},
			method: field{"httpMethod", e.HTTPMethod}, path: field{"path", e.Path},
			query:   canonicalQuery(e.QueryStringParameters, e.MultiValueQueryStringParameters),
			headers: e.Headers, multi: e.MultiValueHeaders, domain: domainOf("", e.Headers, e.MultiValueHeaders),
			caller: strings.Join(values("x-amzn-oidc-identity", e.Headers, e.MultiValueHeaders), " "),
			proof:  proof, byHeader: len(proof) == 0,
		}, nil
	}
	return urlRequest(found.(events.LambdaFunctionURLRequest)) // there is no other type
}

// restRequest returns the request of a REST API, or of an HTTP API with payload
// format 1.0.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html#api-gateway-simple-proxy-for-lambda-input-format
func restRequest(e events.APIGatewayProxyRequest) request {
	c := e.RequestContext
	caller, err := gatewayCaller(c.Authorizer, c.Identity)
	return request{
		api: field{"requestContext.apiId", c.APIID}, stage: c.Stage,
		method: field{"httpMethod", e.HTTPMethod}, path: field{"path", e.Path},
		query:   canonicalQuery(e.QueryStringParameters, e.MultiValueQueryStringParameters),
		headers: e.Headers, multi: e.MultiValueHeaders, domain: domainOf(c.DomainName, e.Headers, e.MultiValueHeaders),
		caller: caller, callerErr: err, byFunction: namesPrincipal(c.Authorizer), bySignature: namesSigner(c.Identity), signed: isSigned(c.Identity),
		authorizer: besidesCaller(c.Authorizer), besides: besidesHeaders(c.Identity),
	}
}

// httpRequest returns the request of an HTTP API.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html#http-api-develop-integrations-lambda.proxy-format
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-lambda-authorizer.html
func httpRequest(e events.APIGatewayV2HTTPRequest) (request, error) {
	c := e.RequestContext
	switch {
	case e.Version == "" || e.Version == "2.0":
	case e.Version == "1.0" && c.APIID != "": // other sources have versions too
		return request{}, &lock.NoKeyError{Field: "version", Reason: "is 1.0, not 2.0: for payload format 1.0 let handler and key function take an events.APIGatewayProxyRequest"}
	default:
		return request{}, &lock.NoKeyError{Field: "version", Reason: fmt.Sprintf("is %q, not 2.0: %s", e.Version, keyparts.AnotherSource)}
	}
	caller, err := authorizedCaller(c.Authorizer)
	r := request{
		api: field{"requestContext.apiId", c.APIID}, stage: c.Stage,
		method: field{"requestContext.http.method", c.HTTP.Method}, path: field{"rawPath", e.RawPath},
		query: sortedQuery(e.RawQueryString), headers: e.Headers, domain: domainOf(c.DomainName, e.Headers, nil),
		caller: caller, callerErr: err, cookies: e.Cookies,
	}
	if a := c.Authorizer; a != nil {
		r.authorizer = a.Lambda
		r.signed = a.IAM != nil
		r.bySignature = r.signed && a.IAM.CognitoIdentity.IdentityID == ""
	}
	if cert := c.Authentication.ClientCert; cert.SerialNumber != "" {
		r.besides = []string{certificate(cert.IssuerDN, cert.SerialNumber)}
	}
	return r, nil
}

// webSocketRequest takes event type and route for method and path. Only the
// request that opens a connection has headers.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-route-keys-connect-disconnect.html
// https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-mapping-template-reference.html
func webSocketRequest(e events.APIGatewayWebsocketProxyRequest) request {
	c := e.RequestContext
	authorizer, _ := c.Authorizer.(map[string]any)
	caller, err := gatewayCaller(authorizer, c.Identity)
	r := request{
		api: field{"requestContext.apiId", c.APIID}, stage: c.Stage,
		method: field{"requestContext.eventType", c.EventType}, path: field{"requestContext.routeKey", c.RouteKey},
		query:   canonicalQuery(e.QueryStringParameters, e.MultiValueQueryStringParameters),
		headers: e.Headers, multi: e.MultiValueHeaders, domain: domainOf(c.DomainName, e.Headers, e.MultiValueHeaders),
		caller: caller, callerErr: err, byFunction: namesPrincipal(authorizer), bySignature: namesSigner(c.Identity), signed: isSigned(c.Identity),
		authorizer: besidesCaller(authorizer), besides: besidesHeaders(c.Identity),
	}
	if c.EventType != "" && c.EventType != "CONNECT" {
		r.besides = append(r.besides, keyparts.Name("connection", c.ConnectionID))
		r.keyErr = &lock.NoKeyError{Field: "requestContext.eventType", Reason: "is not CONNECT: a message has no headers; take its key from the body with keyfuncs.HTTPBody"}
	}
	return r
}

// urlRequest refuses events of HTTP APIs, whose form is the same but for the
// authorizers: without these, callers would not be told apart. A request that
// a test builds names no API, and may name any domain.
// https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads
// https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html
func urlRequest(e events.LambdaFunctionURLRequest) (request, error) {
	c := e.RequestContext
	if c.APIID != "" && c.DomainName != "" && !strings.Contains(c.DomainName, ".lambda-url.") {
		instead := "for an HTTP API let handler and key function take an events.APIGatewayV2HTTPRequest; for an emulator such as sam local start-function-urls let a function around the wrapper set id.lambda-url.local, and one apiId for all requests"
		if c.HTTP.Method == "" {
			instead = keyparts.AnotherSource
		}
		return request{}, &lock.NoKeyError{Field: "requestContext.domainName", Reason: "is not that of a Function URL: " + instead}
	}
	var caller string
	if c.Authorizer != nil && c.Authorizer.IAM != nil {
		caller = iamCaller(c.Authorizer.IAM.CallerID, "")
	}
	return request{
		api:    field{"requestContext.apiId", c.APIID},
		method: field{"requestContext.http.method", c.HTTP.Method}, path: field{"rawPath", e.RawPath},
		query: sortedQuery(e.RawQueryString), headers: e.Headers, domain: domainOf(c.DomainName, e.Headers, nil),
		caller: caller, bySignature: caller != "", signed: caller != "", cookies: e.Cookies,
	}, nil
}

// accessToken is a header that a load balancer adds to the requests of users
// whom it has authenticated. Only these users and the load balancer know the
// token, so it tells them from a client that sends x-amzn-oidc-identity itself,
// past a listener without authentication.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/listener-authenticate-users.html#user-claims-encoding
const accessToken = "x-amzn-oidc-accesstoken"

// domainOf returns the domain that a client has asked, which the gateway names
// or else the header Host, together with the one that a proxy says it was asked
// by. It is empty if none is known.
func domainOf(name string, headers map[string]string, multi map[string][]string) string {
	hosts := values("Host", headers, multi)
	if name != "" {
		hosts = []string{name}
	}
	forwarded := values("X-Forwarded-Host", headers, multi)
	return strings.ToLower(keyparts.Name(strings.Join(hosts, ","), forwarded...))
}

// named returns the values of a header, each after its name.
func named(name string, headers map[string]string, multi map[string][]string) []string {
	var found []string
	for _, v := range values(name, headers, multi) {
		found = append(found, name, v)
	}
	return found
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

// unsigned returns a query without the signature that it may hold, because a
// retry has another.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
func unsigned(query string) string {
	members, err := url.ParseQuery(query)
	if err != nil {
		return query
	}
	for _, name := range []string{"Algorithm", "Credential", "Date", "Expires", "Security-Token", "Signature", "SignedHeaders"} {
		members.Del("X-Amz-" + name)
	}
	return members.Encode()
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
