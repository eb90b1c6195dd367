package keyfuncs_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

const idempotencyKey = "c1b7f0e2-6a4d-4f7e-9a55-2d1d3a0f6e01"

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	// The digest is that of the body, which some of the gateways send as base64.
	// The last part is the caller, with what besides its name can tell it apart.
	want := func(scope, domain, query, caller string) lock.Key {
		return lock.Key{
			Name: "http/" + scope + "/" + idempotencyKey, Event: idempotencyKey,
			Payload: "request/POST/" + domain + "/%2Forders%2F7/" + query + "/2i4pcsPZD5iIgfiu-52zU1eNA22ZyqohyDbLwQT8tCA/caller%2F" + caller,
		}
	}
	group := "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup%2Forders%2F0a1b2c3d4e5f6071"
	gives(t, "apigateway-rest.json", keyfuncs.IdempotencyKey[events.APIGatewayProxyRequest],
		want("r3st4p1x9z/prod/https:%2F%2Fcognito-idp.eu-west-1.amazonaws.com%2Feu-west-1_aB3dE5fG7%205b1c9d0e-2f3a-4b5c-8d6e-7f8091a2b3c4",
			"r3st4p1x9z.execute-api.eu-west-1.amazonaws.com", "notify=yes", "https:%252F%252Fcognito-idp.eu-west-1.amazonaws.com%252Feu-west-1_aB3dE5fG7%25205b1c9d0e-2f3a-4b5c-8d6e-7f8091a2b3c4%2F4-t3SsdV5mpW7JFg5Fj2D0X2i9ZKL_vmByD651yBSas"))
	gives(t, "apigateway-http.json", keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest],
		want("h77p4p1x9z/$default/https:%2F%2Flogin.example.com%2F%20user%7C5b1c9d0e", "h77p4p1x9z.execute-api.eu-west-1.amazonaws.com", "notify=yes&tag=a&tag=b", "https:%252F%252Flogin.example.com%252F%2520user%257C5b1c9d0e%2FbOXRItaPsdcQhGCOOlZ4vE3kt7PZsUf-FBebbOqx-HE"))
	gives(t, "apigateway-websocket-connect.json", keyfuncs.IdempotencyKey[events.APIGatewayWebsocketProxyRequest],
		lock.Key{
			Name: "http/w5s0ck3t9z/prod/jane/" + idempotencyKey, Event: idempotencyKey,
			Payload: "request/CONNECT/w5s0ck3t9z.execute-api.eu-west-1.amazonaws.com/$connect//47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU/caller%2Fjane%2FrYB_IU9aSjhWXye3mJ-crlW0CA0KS4wylGv8qMwkxnA",
		})
	gives(t, "alb.json", keyfuncs.IdempotencyKey[events.ALBTargetGroupRequest],
		want(group+"//5b1c9d0e-2f3a-4b5c-8d6e-7f8091a2b3c4", "orders.example.com", "notify=yes", "5b1c9d0e-2f3a-4b5c-8d6e-7f8091a2b3c4%2FEr4UrnkNu-VfN2IKg0khQausoF-epmrrlQo4xgFpI5I"))
	gives(t, "alb-multivalue.json", keyfuncs.IdempotencyKey[events.ALBTargetGroupRequest],
		want(group+"//nobody", "orders.example.com", "notify=yes&tag=a&tag=b", "nobody%2FhFxkqpnUJ_2gS8-YBjVPDjUq4Jakd5lEK5G3EiQOvTw"))
	for stage, key := range map[string]func(*testing.T, lock.Key){
		"": func(t *testing.T, k lock.Key) {
			gives(t, "functionurl.json", keyfuncs.IdempotencyKey[events.LambdaFunctionURLRequest], k)
		},
		"$default": func(t *testing.T, k lock.Key) {
			gives(t, "functionurl.json", keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], k)
		}, // the same form
	} {
		key(t, want("u4l0f1u2n3c4t5i6o7n8/"+stage+"/AROAEXAMPLEEXAMPLE012", "u4l0f1u2n3c4t5i6o7n8.lambda-url.eu-west-1.on.aws", "notify=yes", "AROAEXAMPLEEXAMPLE012%2FFXHtcuSPQDkyTJ2kTZ_qLLGaudJ11mUw_3Tk7bj-vFE"))
	}
}

// withoutEvent leaves the name of a key alone: names alone must differ.
func withoutEvent[E any](key keyfuncs.Func[E]) keyfuncs.Func[E] {
	return func(ctx context.Context, e E) (lock.Key, error) {
		k, err := key(ctx, e)
		k.Event, k.Payload = "", ""
		return k, err
	}
}

// TestIdempotencyKeyTellsApart changes one thing of a request at a time.
func TestIdempotencyKeyTellsApart(t *testing.T) { // F28
	t.Parallel()
	apart(t, "apigateway-rest.json", withoutEvent(keyfuncs.IdempotencyKey[events.APIGatewayProxyRequest]), map[string]func(*events.APIGatewayProxyRequest){
		"key":    func(e *events.APIGatewayProxyRequest) { e.Headers, e.MultiValueHeaders = oneHeader("other"), nil },
		"API":    func(e *events.APIGatewayProxyRequest) { e.RequestContext.APIID = "other" },
		"stage":  func(e *events.APIGatewayProxyRequest) { e.RequestContext.Stage = "test" },
		"caller": func(e *events.APIGatewayProxyRequest) { e.RequestContext.Authorizer = nil },
	})
	apart(t, "apigateway-http.json", withoutEvent(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest]), map[string]func(*events.APIGatewayV2HTTPRequest){
		"API":     func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.APIID = "other" },
		"stage":   func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Stage = "test" },
		"issuer":  func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Authorizer.JWT.Claims["iss"] = "other" },
		"subject": func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Authorizer.JWT.Claims["sub"] = "other" },
	})
	apart(t, "apigateway-websocket-connect.json", withoutEvent(keyfuncs.IdempotencyKey[events.APIGatewayWebsocketProxyRequest]), map[string]func(*events.APIGatewayWebsocketProxyRequest){
		"API":    func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.APIID = "other" },
		"stage":  func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.Stage = "test" },
		"caller": func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.Authorizer = nil },
	})
	apart(t, "alb.json", withoutEvent(keyfuncs.IdempotencyKey[events.ALBTargetGroupRequest]), map[string]func(*events.ALBTargetGroupRequest){
		"group":  func(e *events.ALBTargetGroupRequest) { e.RequestContext.ELB.TargetGroupArn = "other" },
		"caller": func(e *events.ALBTargetGroupRequest) { e.Headers["x-amzn-oidc-identity"] = "other" },
	})
	apart(t, "functionurl.json", withoutEvent(keyfuncs.IdempotencyKey[events.LambdaFunctionURLRequest]), map[string]func(*events.LambdaFunctionURLRequest){
		"id": func(e *events.LambdaFunctionURLRequest) { e.RequestContext.APIID = "other" },
		"caller": func(e *events.LambdaFunctionURLRequest) {
			e.RequestContext.Authorizer.IAM.CallerID = "AROAOTHER:worker-17"
		},
		"nobody": func(e *events.LambdaFunctionURLRequest) { e.RequestContext.Authorizer = nil },
	})
}

// TestIdempotencyKeyFingerprint changes one thing of a request at a time: the
// same key then stands for another request.
func TestIdempotencyKeyFingerprint(t *testing.T) {
	t.Parallel()
	fingerprints(t, "apigateway-rest.json", keyfuncs.IdempotencyKey[events.APIGatewayProxyRequest], map[string]func(*events.APIGatewayProxyRequest){
		"method": func(e *events.APIGatewayProxyRequest) { e.HTTPMethod = "PUT" },
		"path":   func(e *events.APIGatewayProxyRequest) { e.Path = "/orders/8" },
		"query": func(e *events.APIGatewayProxyRequest) {
			e.MultiValueQueryStringParameters = map[string][]string{"notify": {"yes", "no"}}
		},
		"a signature": func(e *events.APIGatewayProxyRequest) {
			e.MultiValueQueryStringParameters["X-Amz-Signature"] = []string{"a"} // IAM has not checked it
		},
		"body": func(e *events.APIGatewayProxyRequest) { e.Body += " " },
	})
	fingerprints(t, "apigateway-http.json", keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], map[string]func(*events.APIGatewayV2HTTPRequest){
		"method":       func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "PUT" },
		"path":         func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "/orders/8" },
		"query":        func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = "notify=no&tag=a&tag=b" },
		"query values": func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = "notify=yes&tag=b&tag=a" },
		"no query":     func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = "" },
		"a signature":  func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString += "&X-Amz-Signature=a" }, // IAM has not checked it
		"odd query":    func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = "notify=yes;tag=%zz" },
		"another":      func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = "notify=yes;tag=%zy" },
		"body":         func(e *events.APIGatewayV2HTTPRequest) { e.Body = "other" },
	})
	fingerprints(t, "alb.json", keyfuncs.IdempotencyKey[events.ALBTargetGroupRequest], map[string]func(*events.ALBTargetGroupRequest){
		"method": func(e *events.ALBTargetGroupRequest) { e.HTTPMethod = "PUT" },
		"path":   func(e *events.ALBTargetGroupRequest) { e.Path = "/orders/8" },
		"query":  func(e *events.ALBTargetGroupRequest) { e.QueryStringParameters["notify"] = "no" },
		"body":   func(e *events.ALBTargetGroupRequest) { e.Body = "" },
	})
	fingerprints(t, "functionurl.json", keyfuncs.IdempotencyKey[events.LambdaFunctionURLRequest], map[string]func(*events.LambdaFunctionURLRequest){
		"method": func(e *events.LambdaFunctionURLRequest) { e.RequestContext.HTTP.Method = "PUT" },
		"path":   func(e *events.LambdaFunctionURLRequest) { e.RawPath = "/orders/8" },
		"query":  func(e *events.LambdaFunctionURLRequest) { e.RawQueryString += "&x" },
		"odd":    func(e *events.LambdaFunctionURLRequest) { e.RawQueryString = "notify=yes;tag=%zz" }, // signed, and cannot be parsed
		"odd, 2": func(e *events.LambdaFunctionURLRequest) { e.RawQueryString = "notify=yes;tag=%zy" },
		"body":   func(e *events.LambdaFunctionURLRequest) { e.Body += "=" },
	})
	unchecked := plainURL()
	unchecked.RawQueryString = "X-Amz-Signature=a"
	if k := keyOf(t, keyfuncs.IdempotencyKey[urlRequest], unchecked); k == keyOf(t, keyfuncs.IdempotencyKey[urlRequest], plainURL()) {
		t.Errorf("a signature that IAM has not checked does not count: %+v", k)
	}
	fingerprints(t, "apigateway-websocket-connect.json", keyfuncs.IdempotencyKey[events.APIGatewayWebsocketProxyRequest], map[string]func(*events.APIGatewayWebsocketProxyRequest){
		"query": func(e *events.APIGatewayWebsocketProxyRequest) {
			e.QueryStringParameters = map[string]string{"room": "2"}
		},
	})
}

// fingerprints checks that each change leaves name and event alone, and gives a
// payload that no other has.
func fingerprints[E any](t *testing.T, file string, key keyfuncs.Func[E], changes map[string]func(*E)) {
	t.Helper()
	first := expect.Value(key(t.Context(), load[E](t, file)))(t)
	seen := map[string]string{"": "a request without one", first.Payload: "the first"}
	for name, change := range changes {
		t.Run(file+" "+name, func(t *testing.T) {
			e := load[E](t, file)
			change(&e)
			k, err := key(t.Context(), e)
			if k.Name != first.Name || k.Event != first.Event || seen[k.Payload] != "" || err != nil {
				t.Errorf("%+v, %v; first %+v, its payload that of %s", k, err, first, seen[k.Payload])
			}
			seen[k.Payload] = name
		})
	}
}

// TestIdempotencyKeyKnowsTheSameRequest shows which differences between two
// deliveries of one request do not count.
func TestIdempotencyKeyKnowsTheSameRequest(t *testing.T) {
	t.Parallel()
	first := expect.Value(keyfuncs.IdempotencyKey(t.Context(), load[events.APIGatewayV2HTTPRequest](t, "apigateway-http.json")))(t)
	for name, change := range map[string]func(*events.APIGatewayV2HTTPRequest){
		"order of the query": func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = "tag=a&notify=yes&tag=b" },
		"escapes":            func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = "notify=%79es&tag=a&tag=b" },
		"base64": func(e *events.APIGatewayV2HTTPRequest) {
			e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(e.Body)), true
		},
		"headers": func(e *events.APIGatewayV2HTTPRequest) { e.Headers["user-agent"] = "other" },
		"time":    func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.TimeEpoch++ },
	} {
		t.Run(name, func(t *testing.T) {
			e := load[events.APIGatewayV2HTTPRequest](t, "apigateway-http.json")
			change(&e)
			if k, err := keyfuncs.IdempotencyKey(t.Context(), e); k != first || err != nil {
				t.Errorf("%+v, %v; want %+v", k, err, first)
			}
		})
	}
	broken := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/", Headers: oneHeader("k"), Body: "!", IsBase64Encoded: true}
	broken.RequestContext.ELB.TargetGroupArn = "arn"
	if k, err := keyfuncs.IdempotencyKey(t.Context(), broken); !errors.As(err, new(*lock.NoKeyError)) || k != (lock.Key{}) {
		t.Errorf("a body that is not base64: %+v, %v", k, err)
	}
}

func oneHeader(key string) map[string]string { return map[string]string{"Idempotency-Key": key} }

func TestCallers(t *testing.T) {
	t.Parallel()
	name := func(caller string) string { return "http/api/prod/" + caller + "/k" }
	for what, c := range map[string]struct {
		authorizer map[string]any
		identity   events.APIGatewayRequestIdentity
		want       string
	}{
		"nobody":             {want: "nobody"},
		"token":              {authorizer: map[string]any{"claims": map[string]any{"sub": "jane", "iss": "https://i"}}, want: "https:%2F%2Fi%20jane"},
		"no token after all": {authorizer: map[string]any{"claims": nil, "scopes": nil}, want: "nobody"},
		"Lambda authorizer":  {authorizer: map[string]any{"principalId": "jane", "tenant": "north"}, want: "jane"},
		"IAM user":           {identity: events.APIGatewayRequestIdentity{Caller: "AIDAEXAMPLE"}, want: "AIDAEXAMPLE"},
		"IAM role":           {identity: events.APIGatewayRequestIdentity{Caller: "AROAEXAMPLE:session"}, want: "AROAEXAMPLE"},
		"federated user":     {identity: events.APIGatewayRequestIdentity{Caller: "123456789012:jane"}, want: "123456789012:jane"},
		"Cognito identity":   {identity: events.APIGatewayRequestIdentity{Caller: "AROAEXAMPLE:CognitoIdentityCredentials", CognitoIdentityID: "eu-west-1:jane"}, want: "eu-west-1:jane"},
	} {
		t.Run("REST "+what, func(t *testing.T) {
			t.Parallel()
			e := events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/", Headers: oneHeader("k")}
			e.RequestContext = events.APIGatewayProxyRequestContext{APIID: "api", Stage: "prod", Authorizer: c.authorizer, Identity: c.identity}
			if k, err := keyfuncs.IdempotencyKey(t.Context(), e); k.Name != name(c.want) || err != nil {
				t.Errorf("%q, %v; want %q", k.Name, err, name(c.want))
			}
		})
	}
	type authorizer = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	for what, c := range map[string]struct {
		authorizer string
		want       string
	}{
		"nobody":            {`null`, "nobody"},
		"empty token":       {`{"jwt":{}}`, "nobody"}, // of serverless-offline
		"token":             {`{"jwt":{"claims":{"sub":"jane","iss":"https://i"}}}`, "https:%2F%2Fi%20jane"},
		"Lambda authorizer": {`{"lambda":{"principalId":"jane"}}`, "nobody"},
		"IAM role":          {`{"iam":{"callerId":"AROAEXAMPLE:session","cognitoIdentity":null}}`, "AROAEXAMPLE"},
		"Cognito identity":  {`{"iam":{"callerId":"AROAEXAMPLE:CognitoIdentityCredentials","cognitoIdentity":{"identityId":"eu-west-1:jane"}}}`, "eu-west-1:jane"},
	} {
		t.Run("HTTP "+what, func(t *testing.T) {
			t.Parallel()
			e := events.APIGatewayV2HTTPRequest{RawPath: "/", Headers: oneHeader("k")}
			e.RequestContext = events.APIGatewayV2HTTPRequestContext{APIID: "api", Stage: "prod", Authorizer: decoded[*authorizer](t, c.authorizer)}
			e.RequestContext.HTTP.Method = "POST"
			if k, err := keyfuncs.IdempotencyKey(t.Context(), e); k.Name != name(c.want) || err != nil {
				t.Errorf("%q, %v; want %q", k.Name, err, name(c.want))
			}
		})
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
		"empty":                 {headers: oneHeader("  "), multi: multi{"Idempotency-Key": {""}}, err: "is empty: send"},
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
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/", Headers: c.headers, MultiValueHeaders: c.multi}
			e.RequestContext.ELB.TargetGroupArn = "arn"
			k, err := keyfuncs.IdempotencyKey(t.Context(), e)
			if c.err == "" {
				if k.Event != c.want || err != nil {
					t.Errorf("%+v, %v; want %q", k, err, c.want)
				}
				return
			}
			refused, ok := err.(*lock.NoKeyError)
			if !ok || refused.Field != "headers[Idempotency-Key]" || !strings.Contains(refused.Reason, c.err) || !refused.Client || refused.Missing != strings.Contains(c.err, "missing") || k != (lock.Key{}) {
				t.Errorf("%+v, %v; want a NoKeyError of the client that says %q", k, err, c.err)
			}
		})
	}
}

func TestCallerDoesNotDependOnTheMap(t *testing.T) {
	t.Parallel()
	e := load[events.ALBTargetGroupRequest](t, "alb.json")
	for _, name := range []string{"X-amzn-oidc-identity", "x-Amzn-oidc-identity", "x-amzn-Oidc-identity", "x-amzn-oidc-Identity"} {
		e.Headers[name] = name
	}
	want, err := keyfuncs.IdempotencyKey(t.Context(), e)
	for range 50 {
		if got, _ := keyfuncs.IdempotencyKey(t.Context(), e); got != want || err != nil {
			t.Fatalf("%+v, then %+v, %v", want, got, err)
		}
	}
}

func TestIdempotencyKeyErrors(t *testing.T) { // F26
	t.Parallel()
	noSubject := map[string]any{"claims": map[string]any{"iss": "https://i"}}
	operators(t, "apigateway-rest.json", map[string]operatorsMistake[events.APIGatewayProxyRequest]{
		"no API":     {func(e *events.APIGatewayProxyRequest) { e.RequestContext.APIID = "" }, "requestContext.apiId", "another source"},
		"no method":  {func(e *events.APIGatewayProxyRequest) { e.HTTPMethod = "" }, "httpMethod", "another source"},
		"no path":    {func(e *events.APIGatewayProxyRequest) { e.Path = "" }, "path", "another source"},
		"no subject": {func(e *events.APIGatewayProxyRequest) { e.RequestContext.Authorizer = noSubject }, "requestContext.authorizer.claims.sub", "told apart"},
		"no JSON":    {func(e *events.APIGatewayProxyRequest) { e.RequestContext.Authorizer["user"] = func() {} }, "requestContext.authorizer", "told apart"},
	})
	operators(t, "apigateway-http.json", map[string]operatorsMistake[events.APIGatewayV2HTTPRequest]{
		"no API":     {func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.APIID = "" }, "requestContext.apiId", "another source"},
		"no method":  {func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "" }, "requestContext.http.method", "another source"},
		"no path":    {func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "" }, "rawPath", "another source"},
		"no subject": {func(e *events.APIGatewayV2HTTPRequest) { delete(e.RequestContext.Authorizer.JWT.Claims, "sub") }, "requestContext.authorizer.jwt.claims.sub", "told apart"},
		"format 1.0": {func(e *events.APIGatewayV2HTTPRequest) { e.Version = "1.0" }, "version", "take an events.APIGatewayProxyRequest"},
	})
	operators(t, "apigateway-websocket-connect.json", map[string]operatorsMistake[events.APIGatewayWebsocketProxyRequest]{
		"no type":    {func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.EventType = "" }, "requestContext.eventType", "another source"},
		"no route":   {func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.RouteKey = "" }, "requestContext.routeKey", "another source"},
		"no subject": {func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.Authorizer = noSubject }, "requestContext.authorizer.claims.sub", "told apart"},
	})
	operators(t, "alb.json", map[string]operatorsMistake[events.ALBTargetGroupRequest]{
		"no group":  {func(e *events.ALBTargetGroupRequest) { e.RequestContext.ELB.TargetGroupArn = "" }, "requestContext.elb.targetGroupArn", "another source"},
		"no method": {func(e *events.ALBTargetGroupRequest) { e.HTTPMethod = "" }, "httpMethod", "another source"},
		"no path":   {func(e *events.ALBTargetGroupRequest) { e.Path = "" }, "path", "another source"},
	})
	operators(t, "functionurl.json", map[string]operatorsMistake[events.LambdaFunctionURLRequest]{
		"no id":     {func(e *events.LambdaFunctionURLRequest) { e.RequestContext.APIID = "" }, "requestContext.apiId", "another source"},
		"no method": {func(e *events.LambdaFunctionURLRequest) { e.RequestContext.HTTP.Method = "" }, "requestContext.http.method", "another source"},
		"no path":   {func(e *events.LambdaFunctionURLRequest) { e.RawPath = "" }, "rawPath", "another source"},
	})
	// Its authorizer would be lost.
	operators(t, "apigateway-http.json", map[string]operatorsMistake[events.LambdaFunctionURLRequest]{
		"HTTP API":      {nil, "requestContext.domainName", "take an events.APIGatewayV2HTTPRequest"},
		"custom domain": {func(e *events.LambdaFunctionURLRequest) { e.RequestContext.DomainName = "api.example.com" }, "requestContext.domainName", "HTTP API"},
		"emulator":      {func(e *events.LambdaFunctionURLRequest) { e.RequestContext.DomainName = "127.0.0.1:3001" }, "requestContext.domainName", "and one apiId for all requests"},
	})
	operators(t, "apigateway-websocket-message.json", map[string]operatorsMistake[events.APIGatewayWebsocketProxyRequest]{
		"a message": {nil, "requestContext.eventType", "a message has no headers; take its key from the body with keyfuncs.HTTPBody"},
	})
	byHand := func(e *events.APIGatewayV2HTTPRequest) { e.Version = "" }
	if _, err := changed(t, "apigateway-http.json", keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], byHand); err != nil {
		t.Errorf("a request built without its version: %v", err)
	}
}

// operatorsMistake is what the client could not have done, and the error says
// so.
type operatorsMistake[E any] struct {
	change      func(*E)
	field, says string
}

func operators[E any](t *testing.T, file string, cases map[string]operatorsMistake[E]) {
	t.Helper()
	for name, c := range cases {
		_, err := changed(t, file, keyfuncs.IdempotencyKey[E], c.change)
		refused(t, file+" "+name, err, c.field, c.says)
		if e, ok := err.(*lock.NoKeyError); ok && e.Client {
			t.Errorf("%s, %s: %v is the client's fault", file, name, err)
		}
	}
}

// TestHTTPTarget shows that a target is the method, domain, path and query of a
// request, and nothing else of it.
func TestHTTPTarget(t *testing.T) {
	t.Parallel()
	of := func(change func(*httpRequest)) lock.Key {
		e := plainHTTP()
		e.RequestContext.DomainName, e.RawQueryString = "shop.example", "a=1&b=2"
		change(&e)
		return expect.Value(keyfuncs.HTTPTarget(t.Context(), e))(t)
	}
	first := of(func(*httpRequest) {})
	if first.Name == "" || first != (lock.Key{Name: first.Name}) {
		t.Errorf("%+v, want a name only", first)
	}
	for what, change := range map[string]func(*httpRequest){
		"method": func(e *httpRequest) { e.RequestContext.HTTP.Method = "DELETE" },
		"domain": func(e *httpRequest) { e.RequestContext.DomainName = "other.example" },
		"path":   func(e *httpRequest) { e.RawPath = "/refunds/8" },
		"query":  func(e *httpRequest) { e.RawQueryString = "a=1&b=3" },
	} {
		if other := of(change); other.Name == first.Name {
			t.Errorf("another %s has the target %q, too", what, other.Name)
		}
	}
	for what, change := range map[string]func(*httpRequest){
		"order of the query": func(e *httpRequest) { e.RawQueryString = "b=2&a=1" },
		"body":               func(e *httpRequest) { e.Body = "other" },
		"header":             func(e *httpRequest) { e.Headers["authorization"] = "Bearer b" },
		"route":              func(e *httpRequest) { e.RouteKey = "$default" },
	} {
		if again := of(change); again != first {
			t.Errorf("with another %s: %+v, want %+v", what, again, first)
		}
	}
	if _, err := keyfuncs.HTTPTarget(t.Context(), httpRequest{}); !errors.As(err, new(*lock.NoKeyError)) {
		t.Errorf("a request from no gateway: %v", err)
	}
	_, err := keyfuncs.HTTPTarget(t.Context(), "text")
	refused(t, "no request", err, "the event", "is a string without an HTTP request")
}
