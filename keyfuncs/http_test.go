package keyfuncs_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

const idempotencyKey = "c1b7f0e2-6a4d-4f7e-9a55-2d1d3a0f6e01"

func TestHTTPRequests(t *testing.T) {
	t.Parallel()
	rest := load[events.APIGatewayProxyRequest](t, "apigateway-rest.json")
	http := load[events.APIGatewayV2HTTPRequest](t, "apigateway-http.json")
	connect := load[events.APIGatewayWebsocketProxyRequest](t, "apigateway-websocket-connect.json")
	alb := load[events.ALBTargetGroupRequest](t, "alb.json")
	albMulti := load[events.ALBTargetGroupRequest](t, "alb-multivalue.json")
	url := load[events.LambdaFunctionURLRequest](t, "functionurl.json")
	for name, c := range map[string]struct {
		key  func(context.Context) (lock.Key, error)
		want string
	}{
		"REST": {
			func(ctx context.Context) (lock.Key, error) { return keyfuncs.APIGatewayREST(ctx, rest) },
			"http/r3st4p1x9z/prod/POST/%2Forders%2F7/https:%2F%2Fcognito-idp.eu-west-1.amazonaws.com%2Feu-west-1_aB3dE5fG7%205b1c9d0e-2f3a-4b5c-8d6e-7f8091a2b3c4/",
		},
		"HTTP": {
			func(ctx context.Context) (lock.Key, error) { return keyfuncs.APIGatewayHTTP(ctx, http) },
			"http/h77p4p1x9z/$default/POST/%2Forders%2F7/https:%2F%2Flogin.example.com%2F%20user%7C5b1c9d0e/",
		},
		"WebSocket": {
			func(ctx context.Context) (lock.Key, error) { return keyfuncs.APIGatewayWebSocket(ctx, connect) },
			"http/w5s0ck3t9z/prod/CONNECT/$connect/jane/",
		},
		"ALB": {
			func(ctx context.Context) (lock.Key, error) { return keyfuncs.ALB(ctx, alb) },
			"http/arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup%2Forders%2F0a1b2c3d4e5f6071//POST/%2Forders%2F7/5b1c9d0e-2f3a-4b5c-8d6e-7f8091a2b3c4/",
		},
		"ALB with multi-value headers": {
			func(ctx context.Context) (lock.Key, error) { return keyfuncs.ALB(ctx, albMulti) },
			"http/arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup%2Forders%2F0a1b2c3d4e5f6071//POST/%2Forders%2F7//",
		},
		"Function URL": {
			func(ctx context.Context) (lock.Key, error) { return keyfuncs.FunctionURL(ctx, url) },
			"http/u4l0f1u2n3c4t5i6o7n8//POST/%2Forders%2F7/AROAEXAMPLEEXAMPLE012/",
		},
	} {
		want := lock.Key{Name: c.want + idempotencyKey, Event: idempotencyKey}
		if got, err := c.key(t.Context()); got != want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// TestHTTPNamesDiffer changes one thing of a request at a time.
func TestHTTPNamesDiffer(t *testing.T) { // F28
	t.Parallel()
	seen := map[string]string{}
	add := func(what string, k lock.Key, err error) {
		t.Helper()
		if other, ok := seen[k.Name]; ok || err != nil {
			t.Errorf("%s has the name of %s: %q, %v", what, other, k.Name, err)
		}
		seen[k.Name] = what
	}
	for what, change := range map[string]func(*events.APIGatewayProxyRequest){
		"REST":        func(*events.APIGatewayProxyRequest) {},
		"REST key":    func(e *events.APIGatewayProxyRequest) { e.Headers, e.MultiValueHeaders = oneHeader("other"), nil },
		"REST method": func(e *events.APIGatewayProxyRequest) { e.HTTPMethod = "PUT" },
		"REST path":   func(e *events.APIGatewayProxyRequest) { e.Path = "/orders/8" },
		"REST API":    func(e *events.APIGatewayProxyRequest) { e.RequestContext.APIID = "other" },
		"REST stage":  func(e *events.APIGatewayProxyRequest) { e.RequestContext.Stage = "test" },
		"REST caller": func(e *events.APIGatewayProxyRequest) { e.RequestContext.Authorizer = nil },
	} {
		e := load[events.APIGatewayProxyRequest](t, "apigateway-rest.json")
		change(&e)
		k, err := keyfuncs.APIGatewayREST(t.Context(), e)
		add(what, k, err)
	}
	for what, change := range map[string]func(*events.APIGatewayV2HTTPRequest){
		"HTTP":         func(*events.APIGatewayV2HTTPRequest) {},
		"HTTP method":  func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "PUT" },
		"HTTP path":    func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "/orders/8" },
		"HTTP API":     func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.APIID = "other" },
		"HTTP stage":   func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Stage = "test" },
		"HTTP issuer":  func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Authorizer.JWT.Claims["iss"] = "other" },
		"HTTP subject": func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Authorizer.JWT.Claims["sub"] = "other" },
	} {
		e := load[events.APIGatewayV2HTTPRequest](t, "apigateway-http.json")
		change(&e)
		k, err := keyfuncs.APIGatewayHTTP(t.Context(), e)
		add(what, k, err)
	}
	for what, change := range map[string]func(*events.APIGatewayWebsocketProxyRequest){
		"WebSocket":        func(*events.APIGatewayWebsocketProxyRequest) {},
		"WebSocket API":    func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.APIID = "other" },
		"WebSocket stage":  func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.Stage = "test" },
		"WebSocket caller": func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.Authorizer = nil },
	} {
		e := load[events.APIGatewayWebsocketProxyRequest](t, "apigateway-websocket-connect.json")
		change(&e)
		k, err := keyfuncs.APIGatewayWebSocket(t.Context(), e)
		add(what, k, err)
	}
	for what, change := range map[string]func(*events.ALBTargetGroupRequest){
		"ALB":        func(*events.ALBTargetGroupRequest) {},
		"ALB method": func(e *events.ALBTargetGroupRequest) { e.HTTPMethod = "PUT" },
		"ALB path":   func(e *events.ALBTargetGroupRequest) { e.Path = "/orders/8" },
		"ALB group":  func(e *events.ALBTargetGroupRequest) { e.RequestContext.ELB.TargetGroupArn = "other" },
		"ALB caller": func(e *events.ALBTargetGroupRequest) { e.Headers["x-amzn-oidc-identity"] = "other" },
	} {
		e := load[events.ALBTargetGroupRequest](t, "alb.json")
		change(&e)
		k, err := keyfuncs.ALB(t.Context(), e)
		add(what, k, err)
	}
	for what, change := range map[string]func(*events.LambdaFunctionURLRequest){
		"URL":        func(*events.LambdaFunctionURLRequest) {},
		"URL method": func(e *events.LambdaFunctionURLRequest) { e.RequestContext.HTTP.Method = "PUT" },
		"URL path":   func(e *events.LambdaFunctionURLRequest) { e.RawPath = "/orders/8" },
		"URL id":     func(e *events.LambdaFunctionURLRequest) { e.RequestContext.APIID = "other" },
		"URL caller": func(e *events.LambdaFunctionURLRequest) {
			e.RequestContext.Authorizer.IAM.CallerID = "AROAOTHER:worker-17"
		},
		"URL nobody": func(e *events.LambdaFunctionURLRequest) { e.RequestContext.Authorizer = nil },
	} {
		e := load[events.LambdaFunctionURLRequest](t, "functionurl.json")
		change(&e)
		k, err := keyfuncs.FunctionURL(t.Context(), e)
		add(what, k, err)
	}
}

func oneHeader(key string) map[string]string { return map[string]string{"Idempotency-Key": key} }

func TestHTTPCallers(t *testing.T) {
	t.Parallel()
	name := func(caller string) string { return "http/api/prod/POST/%2F/" + caller + "/k" }
	for what, c := range map[string]struct {
		authorizer map[string]any
		identity   events.APIGatewayRequestIdentity
		want       string
	}{
		"nobody":             {want: ""},
		"token":              {authorizer: map[string]any{"claims": map[string]any{"sub": "jane", "iss": "https://i"}}, want: "https:%2F%2Fi%20jane"},
		"no token after all": {authorizer: map[string]any{"claims": nil, "scopes": nil}, want: ""},
		"Lambda authorizer":  {authorizer: map[string]any{"principalId": "jane", "tenant": "north"}, want: "jane"},
		"IAM user":           {identity: events.APIGatewayRequestIdentity{Caller: "AIDAEXAMPLE"}, want: "AIDAEXAMPLE"},
		"IAM role":           {identity: events.APIGatewayRequestIdentity{Caller: "AROAEXAMPLE:session"}, want: "AROAEXAMPLE"},
		"federated user":     {identity: events.APIGatewayRequestIdentity{Caller: "123456789012:jane"}, want: "123456789012:jane"},
		"Cognito identity":   {identity: events.APIGatewayRequestIdentity{Caller: "AROAEXAMPLE:CognitoIdentityCredentials", CognitoIdentityID: "eu-west-1:jane"}, want: "eu-west-1:jane"},
	} {
		rest := events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/", Headers: oneHeader("k")}
		rest.RequestContext = events.APIGatewayProxyRequestContext{APIID: "api", Stage: "prod", Authorizer: c.authorizer, Identity: c.identity}
		if k, err := keyfuncs.APIGatewayREST(t.Context(), rest); k.Name != name(c.want) || err != nil {
			t.Errorf("REST, %s: %q, %v; want %q", what, k.Name, err, name(c.want))
		}
	}
	type authorizer = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	for what, c := range map[string]struct {
		authorizer string
		want       string
	}{
		"nobody":            {`null`, ""},
		"token":             {`{"jwt":{"claims":{"sub":"jane","iss":"https://i"}}}`, "https:%2F%2Fi%20jane"},
		"Lambda authorizer": {`{"lambda":{"principalId":"jane"}}`, ""},
		"IAM role":          {`{"iam":{"callerId":"AROAEXAMPLE:session","cognitoIdentity":null}}`, "AROAEXAMPLE"},
		"Cognito identity":  {`{"iam":{"callerId":"AROAEXAMPLE:CognitoIdentityCredentials","cognitoIdentity":{"identityId":"eu-west-1:jane"}}}`, "eu-west-1:jane"},
	} {
		e := events.APIGatewayV2HTTPRequest{RawPath: "/", Headers: oneHeader("k")}
		e.RequestContext = events.APIGatewayV2HTTPRequestContext{APIID: "api", Stage: "prod", Authorizer: new(authorizer)}
		e.RequestContext.HTTP.Method = "POST"
		if err := json.Unmarshal([]byte(c.authorizer), &e.RequestContext.Authorizer); err != nil {
			t.Fatal(err)
		}
		if k, err := keyfuncs.APIGatewayHTTP(t.Context(), e); k.Name != name(c.want) || err != nil {
			t.Errorf("HTTP, %s: %q, %v; want %q", what, k.Name, err, name(c.want))
		}
	}
}

func TestIdempotencyKeyHeader(t *testing.T) { // F27
	t.Parallel()
	type multi = map[string][]string
	for what, c := range map[string]struct {
		headers map[string]string
		multi   multi
		want    string
		err     string
	}{
		"other case":            {headers: map[string]string{"IDEMPOTENCY-key": "k"}, want: "k"},
		"white space":           {headers: oneHeader(" \tk k\t "), want: "k k"},
		"quotes are part of it": {headers: oneHeader(`"k"`), want: `"k"`},
		"not ASCII":             {headers: oneHeader("ключ/é"), want: "ключ/é"},
		"multi-value":           {multi: multi{"idempotency-key": {"k"}}, want: "k"},
		"twice the same":        {headers: oneHeader("k"), multi: multi{"idempotency-key": {"k", " k"}}, want: "k"},
		"two spellings":         {headers: map[string]string{"Idempotency-Key": "k", "idempotency-key": "k"}, want: "k"},
		"as long as it may be":  {headers: oneHeader(strings.Repeat("k", 255)), want: strings.Repeat("k", 255)},
		"none":                  {headers: map[string]string{"idempotency": "k"}, err: "is missing: send"},
		"empty":                 {headers: oneHeader("  "), multi: multi{"Idempotency-Key": {""}}, err: "is missing: send"},
		"no values":             {multi: multi{"Idempotency-Key": {}}, err: "is missing: send"},
		"several":               {headers: oneHeader("b"), multi: multi{"Idempotency-Key": {"a", "b"}}, err: "several different"},
		"several spellings":     {headers: map[string]string{"Idempotency-Key": "a", "idempotency-key": "b"}, err: "several different"},
		"empty and not":         {multi: multi{"Idempotency-Key": {"", "k"}}, err: "several different"},
		"too long":              {headers: oneHeader(strings.Repeat("k", 256)), err: "255 bytes"},
		"control character":     {headers: oneHeader("a\nb"), err: "control characters"},
		"at its end":            {headers: oneHeader("k\n"), err: "control characters"},
		"C1 control character":  {headers: oneHeader("a\u0085b"), err: "control characters"},
		"not UTF-8":             {headers: oneHeader("a\xffb"), err: "UTF-8"},
		"was not UTF-8":         {headers: oneHeader("a\ufffdb"), err: "UTF-8"},
	} {
		e := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/", Headers: c.headers, MultiValueHeaders: c.multi}
		e.RequestContext.ELB.TargetGroupArn = "arn"
		k, err := keyfuncs.ALB(t.Context(), e)
		if c.err == "" {
			if k.Event != c.want || err != nil {
				t.Errorf("%s: %+v, %v; want %q", what, k, err, c.want)
			}
			continue
		}
		refused, ok := err.(*lock.KeyError)
		if !ok || refused.Field != "headers[Idempotency-Key]" || !strings.Contains(refused.Reason, c.err) || !refused.Client || k != (lock.Key{}) {
			t.Errorf("%s: %+v, %v; want a KeyError of the client that says %q", what, k, err, c.err)
		}
	}
}

func TestALBCallerDoesNotDependOnTheMap(t *testing.T) {
	t.Parallel()
	e := load[events.ALBTargetGroupRequest](t, "alb.json")
	for _, name := range []string{"X-amzn-oidc-identity", "x-Amzn-oidc-identity", "x-amzn-Oidc-identity", "x-amzn-oidc-Identity"} {
		e.Headers[name] = name
	}
	want, err := keyfuncs.ALB(t.Context(), e)
	for range 50 {
		if got, _ := keyfuncs.ALB(t.Context(), e); got != want || err != nil {
			t.Fatalf("%+v, then %+v, %v", want, got, err)
		}
	}
}

func TestHTTPErrorsNameTheField(t *testing.T) { // F26
	t.Parallel()
	rest := func(change func(*events.APIGatewayProxyRequest)) error {
		e := load[events.APIGatewayProxyRequest](t, "apigateway-rest.json")
		change(&e)
		_, err := keyfuncs.APIGatewayREST(t.Context(), e)
		return err
	}
	http := func(change func(*events.APIGatewayV2HTTPRequest)) error {
		e := load[events.APIGatewayV2HTTPRequest](t, "apigateway-http.json")
		change(&e)
		_, err := keyfuncs.APIGatewayHTTP(t.Context(), e)
		return err
	}
	connect := func(change func(*events.APIGatewayWebsocketProxyRequest)) error {
		e := load[events.APIGatewayWebsocketProxyRequest](t, "apigateway-websocket-connect.json")
		change(&e)
		_, err := keyfuncs.APIGatewayWebSocket(t.Context(), e)
		return err
	}
	alb := func(change func(*events.ALBTargetGroupRequest)) error {
		e := load[events.ALBTargetGroupRequest](t, "alb.json")
		change(&e)
		_, err := keyfuncs.ALB(t.Context(), e)
		return err
	}
	url := func(change func(*events.LambdaFunctionURLRequest)) error {
		e := load[events.LambdaFunctionURLRequest](t, "functionurl.json")
		change(&e)
		_, err := keyfuncs.FunctionURL(t.Context(), e)
		return err
	}
	_, message := keyfuncs.APIGatewayWebSocket(t.Context(), load[events.APIGatewayWebsocketProxyRequest](t, "apigateway-websocket-message.json"))
	noSubject := map[string]any{"claims": map[string]any{"iss": "https://i"}}
	for what, c := range map[string]struct {
		err    error
		field  string
		within string
	}{
		"REST, no API":          {rest(func(e *events.APIGatewayProxyRequest) { e.RequestContext.APIID = "" }), "requestContext.apiId", "another source"},
		"REST, no method":       {rest(func(e *events.APIGatewayProxyRequest) { e.HTTPMethod = "" }), "httpMethod", "another source"},
		"REST, no path":         {rest(func(e *events.APIGatewayProxyRequest) { e.Path = "" }), "path", "another source"},
		"REST, no subject":      {rest(func(e *events.APIGatewayProxyRequest) { e.RequestContext.Authorizer = noSubject }), "requestContext.authorizer.claims.sub", "told apart"},
		"HTTP, no API":          {http(func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.APIID = "" }), "requestContext.apiId", "another source"},
		"HTTP, no method":       {http(func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "" }), "requestContext.http.method", "another source"},
		"HTTP, no path":         {http(func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "" }), "rawPath", "another source"},
		"HTTP, no subject":      {http(func(e *events.APIGatewayV2HTTPRequest) { delete(e.RequestContext.Authorizer.JWT.Claims, "sub") }), "requestContext.authorizer.jwt.claims.sub", "told apart"},
		"HTTP, format 1.0":      {http(func(e *events.APIGatewayV2HTTPRequest) { e.Version = "1.0" }), "version", "use APIGatewayREST"},
		"WebSocket, no type":    {connect(func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.EventType = "" }), "requestContext.eventType", "another source"},
		"WebSocket, no route":   {connect(func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.RouteKey = "" }), "requestContext.routeKey", "another source"},
		"WebSocket, no subject": {connect(func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.Authorizer = noSubject }), "requestContext.authorizer.claims.sub", "told apart"},
		"WebSocket message":     {message, "requestContext.eventType", "a message has no headers; take its key from the body with keyfuncs.Body"},
		"ALB, no group":         {alb(func(e *events.ALBTargetGroupRequest) { e.RequestContext.ELB.TargetGroupArn = "" }), "requestContext.elb.targetGroupArn", "another source"},
		"ALB, no method":        {alb(func(e *events.ALBTargetGroupRequest) { e.HTTPMethod = "" }), "httpMethod", "another source"},
		"ALB, no path":          {alb(func(e *events.ALBTargetGroupRequest) { e.Path = "" }), "path", "another source"},
		"URL, no id":            {url(func(e *events.LambdaFunctionURLRequest) { e.RequestContext.APIID = "" }), "requestContext.apiId", "another source"},
		"URL, no method":        {url(func(e *events.LambdaFunctionURLRequest) { e.RequestContext.HTTP.Method = "" }), "requestContext.http.method", "another source"},
		"URL, no path":          {url(func(e *events.LambdaFunctionURLRequest) { e.RawPath = "" }), "rawPath", "another source"},
	} {
		e, ok := c.err.(*lock.KeyError)
		if !ok || e.Field != c.field || !strings.Contains(e.Error(), c.within) || e.Client {
			t.Errorf("%s: %v, want a KeyError of %s that says %q and is not the client's fault", what, c.err, c.field, c.within)
		}
	}
	if err := http(func(e *events.APIGatewayV2HTTPRequest) { e.Version = "" }); err != nil {
		t.Errorf("a request built without its version: %v", err)
	}
}
