package keyfuncs_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

type (
	restRequest = events.APIGatewayProxyRequest
	httpRequest = events.APIGatewayV2HTTPRequest
	urlRequest  = events.LambdaFunctionURLRequest
	albRequest  = events.ALBTargetGroupRequest
	webSocket   = events.APIGatewayWebsocketProxyRequest
	clientCert  = events.APIGatewayCustomAuthorizerRequestTypeRequestIdentityClientCert
	clientCert2 = events.APIGatewayV2HTTPRequestContextAuthenticationClientCert
)

// plainREST and its like return a request that nobody authenticated.
func plainREST() restRequest {
	e := restRequest{HTTPMethod: "POST", Path: "/", Headers: oneHeader("k")}
	e.RequestContext.APIID, e.RequestContext.Stage = "api", "prod"
	return e
}

func plainHTTP() httpRequest {
	e := httpRequest{RawPath: "/", Headers: oneHeader("k")}
	e.RequestContext.APIID, e.RequestContext.Stage, e.RequestContext.HTTP.Method = "api", "prod", "POST"
	return e
}

func plainURL() urlRequest {
	e := urlRequest{RawPath: "/", Headers: oneHeader("k")}
	e.RequestContext.APIID, e.RequestContext.HTTP.Method = "id", "POST"
	return e
}

func plainALB() albRequest {
	e := albRequest{HTTPMethod: "POST", Path: "/", Headers: oneHeader("k")}
	e.RequestContext.ELB.TargetGroupArn = "arn"
	return e
}

func plainSocket() webSocket {
	e := webSocket{Headers: oneHeader("k")}
	e.RequestContext.APIID, e.RequestContext.EventType, e.RequestContext.RouteKey = "api", "CONNECT", "$connect"
	return e
}

// strangers checks that requests that differ in nothing but who sent them have
// keys of which none is answered with what another one got: the names differ,
// or the payloads do.
func strangers[E any](t *testing.T, gateway string, plain func() E, senders map[string]func(*E)) {
	t.Helper()
	seen := map[[2]string]string{}
	senders["nobody"] = func(*E) {}
	for who, change := range senders {
		e := plain()
		change(&e)
		k, err := keyfuncs.IdempotencyKey(t.Context(), e)
		id := [2]string{k.Name, k.Payload}
		if other, ok := seen[id]; ok || err != nil || k.Event != "k" {
			t.Errorf("%s: %s gets what %s got: %+v, %v", gateway, who, other, k, err)
		}
		seen[id] = who
	}
}

// principal is a request that a Lambda authorizer lets through which returns
// the same for everybody, as those that AWS shows do.
func principal(header, credential string) func(*restRequest) {
	return func(e *restRequest) {
		e.RequestContext.Authorizer = map[string]any{"principalId": "user", "integrationLatency": 7}
		e.Headers[header] = credential
	}
}

// principalOfPlan is the same with an API key that the authorizer returned.
func principalOfPlan(key string) func(*restRequest) {
	return func(e *restRequest) {
		e.RequestContext.Authorizer = map[string]any{"principalId": "user"}
		e.RequestContext.Identity.APIKey = key
	}
}

// signedREST is a request that a proxy signed with IAM credentials of its own.
func signedREST(header, credential string) func(*restRequest) {
	return func(e *restRequest) {
		e.RequestContext.Identity.Caller = "AIDAEXAMPLE"
		e.Headers[header] = credential
	}
}

// throughCloudFront is a request that an origin access control signed, which
// has one role for everybody.
func throughCloudFront(cookies ...string) func(*urlRequest) {
	return func(e *urlRequest) {
		e.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{CallerID: "AROAEXAMPLE:OriginAccessSession"}}
		e.Cookies = cookies
	}
}

// TestStrangers shows that nothing that authenticates the sender of a request
// is the same for two of them.
func TestStrangers(t *testing.T) { // F28, F61
	t.Parallel()
	strangers(t, "REST", plainREST, map[string]func(*restRequest){
		"token a":   func(e *restRequest) { e.Headers["Authorization"] = "Bearer a" },
		"token b":   func(e *restRequest) { e.Headers["authorization"] = "Bearer b" },
		"token c":   func(e *restRequest) { e.MultiValueHeaders = http.Header{"AUTHORIZATION": {"Bearer c"}} },
		"session a": func(e *restRequest) { e.Headers["cookie"] = "s=a; theme=dark" },
		"session b": func(e *restRequest) { e.MultiValueHeaders = http.Header{"Cookie": {"s=b", "theme=dark"}} },
		"key of a":  func(e *restRequest) { e.Headers["x-api-key"] = "a" },
		"certificate 1": func(e *restRequest) {
			e.RequestContext.Identity.ClientCert = &clientCert{IssuerDN: "ca", SerialNumber: "1"}
		},
		"certificate 2": func(e *restRequest) {
			e.RequestContext.Identity.ClientCert = &clientCert{IssuerDN: "ca", SerialNumber: "2"}
		},
		"other issuer": func(e *restRequest) {
			e.RequestContext.Identity.ClientCert = &clientCert{IssuerDN: "cb", SerialNumber: "2"}
		},
		"principal jane":     func(e *restRequest) { e.RequestContext.Authorizer = map[string]any{"principalId": "jane"} },
		"principal 1":        func(e *restRequest) { e.RequestContext.Authorizer = map[string]any{"principalId": 1} },
		"principal 2":        func(e *restRequest) { e.RequestContext.Authorizer = map[string]any{"principalId": 2} },
		"user a":             func(e *restRequest) { e.RequestContext.Authorizer = map[string]any{"principalId": "user", "id": "a"} },
		"user b":             func(e *restRequest) { e.RequestContext.Authorizer = map[string]any{"principalId": "user", "id": "b"} },
		"of one principal a": principal("Authorization", "Bearer a"),
		"of one principal b": principal("Authorization", "Bearer b"),
		"its session a":      principal("Cookie", "s=a"),
		"its session b":      principal("Cookie", "s=b"),
		"its key a":          principal("X-Api-Key", "a"),
		"its key b":          principal("X-Api-Key", "b"),
		"its plan a":         principalOfPlan("a"),
		"its plan b":         principalOfPlan("b"),
		"user, 1.0":          func(e *restRequest) { e.RequestContext.Authorizer = map[string]any{"id": "b"} },
		"Cognito user": func(e *restRequest) {
			e.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"sub": "a"}}
		},
		"IAM user":    func(e *restRequest) { e.RequestContext.Identity.Caller = "AIDAEXAMPLE" },
		"its visitor": signedREST("Cookie", "s=a"),
		"another":     signedREST("Cookie", "s=b"),
		"with a key":  signedREST("X-Api-Key", "a"),
	})
	type authorizer = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	by := func(text string) func(*httpRequest) {
		return func(e *httpRequest) { e.RequestContext.Authorizer = decoded[*authorizer](t, text) }
	}
	strangers(t, "HTTP", plainHTTP, map[string]func(*httpRequest){
		"token a":     func(e *httpRequest) { e.Headers["authorization"] = "Bearer a" },
		"token b":     func(e *httpRequest) { e.Headers["Authorization"] = "Bearer b" },
		"session a":   func(e *httpRequest) { e.Cookies = []string{"s=a"} },
		"session b":   func(e *httpRequest) { e.Cookies = []string{"s=b"} },
		"both":        func(e *httpRequest) { e.Headers["authorization"], e.Cookies = "Bearer a", []string{"s=a"} },
		"as a cookie": func(e *httpRequest) { e.Cookies = []string{"Bearer a"} },
		"certificate 1": func(e *httpRequest) {
			e.RequestContext.Authentication.ClientCert = clientCert2{IssuerDN: "ca", SerialNumber: "1"}
		},
		"certificate 2": func(e *httpRequest) {
			e.RequestContext.Authentication.ClientCert = clientCert2{IssuerDN: "ca", SerialNumber: "2"}
		},
		"other issuer": func(e *httpRequest) {
			e.RequestContext.Authentication.ClientCert = clientCert2{IssuerDN: "cb", SerialNumber: "2"}
		},
		"user a": by(`{"lambda":{"user":"a"}}`),
		"user b": by(`{"lambda":{"user":"b"}}`),
		"tenant": func(e *httpRequest) {
			by(`{"lambda":{"user":"a"}}`)(e)
			e.Headers["authorization"] = "Bearer b"
		},
		"JWT": by(`{"jwt":{"claims":{"sub":"a","iss":"i"}}}`),
		"empty JWT": func(e *httpRequest) {
			by(`{"jwt":{}}`)(e)
			e.Headers["authorization"] = "Bearer c"
		},
		"IAM role": by(`{"iam":{"callerId":"AROAEXAMPLE:session"}}`),
		"its visitor": func(e *httpRequest) {
			by(`{"iam":{"callerId":"AROAEXAMPLE:session"}}`)(e)
			e.Cookies = []string{"s=a"}
		},
	})
	strangers(t, "Function URL", plainURL, map[string]func(*urlRequest){
		"token a":          func(e *urlRequest) { e.Headers["authorization"] = "Bearer a" },
		"session a":        func(e *urlRequest) { e.Cookies = []string{"s=a"} },
		"session b":        func(e *urlRequest) { e.Cookies = []string{"s=b"} },
		"header session c": func(e *urlRequest) { e.Headers["Cookie"] = "s=c" },
		"IAM user": func(e *urlRequest) {
			e.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{CallerID: "AIDAEXAMPLE"}}
		},
		"through CloudFront, a": throughCloudFront("s=a"),
		"through CloudFront, b": throughCloudFront("s=b"),
		"through CloudFront":    throughCloudFront(),
	})
	strangers(t, "load balancer", plainALB, map[string]func(*albRequest){
		"token a": func(e *albRequest) { e.Headers["authorization"] = "Bearer a" },
		"token b": func(e *albRequest) {
			e.Headers, e.MultiValueHeaders = nil, http.Header{"Idempotency-Key": {"k"}, "authorization": {"Bearer b"}}
		},
		"session a":   func(e *albRequest) { e.Headers["cookie"] = "s=a" },
		"certificate": func(e *albRequest) { e.Headers["x-amzn-mtls-clientcert-serial-number"] = "1" },
		"passed on":   func(e *albRequest) { e.Headers["x-amzn-mtls-clientcert"] = "PEM" },
		"OIDC user": func(e *albRequest) {
			e.Headers["x-amzn-oidc-identity"], e.Headers["x-amzn-oidc-accesstoken"] = "a", "token of a"
		},
		"forged, past a listener that authenticates nobody": func(e *albRequest) { e.Headers["x-amzn-oidc-identity"] = "a" },
		"forged, with a token of b": func(e *albRequest) {
			e.Headers["X-Amzn-Oidc-Identity"], e.Headers["X-Amzn-Oidc-Accesstoken"] = "a", "token of b"
		},
	})
	strangers(t, "WebSocket", plainSocket, map[string]func(*webSocket){
		"token a": func(e *webSocket) { e.Headers["authorization"] = "Bearer a" },
		"of one principal a": func(e *webSocket) {
			e.RequestContext.Authorizer, e.Headers["authorization"] = map[string]any{"principalId": "p"}, "a"
		},
		"of one principal b": func(e *webSocket) {
			e.RequestContext.Authorizer, e.Headers["authorization"] = map[string]any{"principalId": "p"}, "b"
		},
		"user a": func(e *webSocket) { e.RequestContext.Authorizer = map[string]any{"principalId": "p", "id": "a"} },
		"user b": func(e *webSocket) { e.RequestContext.Authorizer = map[string]any{"principalId": "p", "id": "b"} },
	})
}

// TestSameCaller shows in what two tries of one client may differ.
func TestSameCaller(t *testing.T) {
	t.Parallel()
	type authorizer = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	http := func(authorized string, change func(*httpRequest)) func() (lock.Key, error) {
		e := plainHTTP()
		e.RequestContext.Authorizer = decoded[*authorizer](t, authorized)
		change(&e)
		return func() (lock.Key, error) { return keyfuncs.IdempotencyKey(t.Context(), e) }
	}
	rest := func(authorized map[string]any, token string) func() (lock.Key, error) {
		e := plainREST()
		e.RequestContext.Authorizer, e.Headers["Authorization"] = authorized, token
		return func() (lock.Key, error) { return keyfuncs.IdempotencyKey(t.Context(), e) }
	}
	byPrincipal := func(token string) func() (lock.Key, error) {
		key := keyfuncs.HeaderKey("Idempotency-Key", func(_ context.Context, e restRequest) (lock.Key, error) {
			user, _ := e.RequestContext.Authorizer["principalId"].(string)
			return lock.Key{Name: user}, nil
		})
		e := plainREST()
		e.RequestContext.Authorizer, e.Headers["Authorization"] = map[string]any{"principalId": "jane"}, token
		return func() (lock.Key, error) { return key(t.Context(), e) }
	}
	token := func(text string) func(*httpRequest) {
		return func(e *httpRequest) { e.Headers["authorization"] = text }
	}
	signed := func(text string) func(*httpRequest) {
		return func(e *httpRequest) {
			e.RawQueryString = "a=1"
			for _, name := range []string{"Algorithm", "Credential", "Date", "Expires", "Security-Token", "Signature", "SignedHeaders"} {
				e.RawQueryString += "&X-Amz-" + name + "=" + text
			}
		}
	}
	restSigned := func(by events.APIGatewayRequestIdentity, text string) func() (lock.Key, error) {
		e := plainREST()
		e.RequestContext.Identity, e.QueryStringParameters = by, map[string]string{"a": "1", "X-Amz-Signature": text}
		if by.CognitoIdentityID != "" {
			e.Headers["Cookie"] = text
		}
		return func() (lock.Key, error) { return keyfuncs.IdempotencyKey(t.Context(), e) }
	}
	user := events.APIGatewayRequestIdentity{Caller: "AIDAEXAMPLE"}
	ofCognito := events.APIGatewayRequestIdentity{Caller: "AROAEXAMPLE:CognitoIdentityCredentials", CognitoIdentityID: "i"}
	identity := events.APIGatewayRequestIdentity{CognitoIdentityID: "i"}
	certified := func(by *clientCert) func() (lock.Key, error) {
		e := plainREST()
		e.RequestContext.Identity.ClientCert = by
		return func() (lock.Key, error) { return keyfuncs.IdempotencyKey(t.Context(), e) }
	}
	url := func(by *events.LambdaFunctionURLRequestContextAuthorizerDescription) func() (lock.Key, error) {
		e := plainURL()
		e.RequestContext.Authorizer = by
		return func() (lock.Key, error) { return keyfuncs.IdempotencyKey(t.Context(), e) }
	}
	urlSigned := func(text string) func() (lock.Key, error) {
		e := load[urlRequest](t, "functionurl.json")
		e.RawQueryString = "X-Amz-Signature=" + text
		return func() (lock.Key, error) { return keyfuncs.IdempotencyKey(t.Context(), e) }
	}
	const jwt = `{"jwt":{"claims":{"sub":"a","iss":"i"}}}`
	for name, c := range map[string]struct{ first, again func() (lock.Key, error) }{
		"a fresh token that the gateway checked":     {http(jwt, token("Bearer a")), http(jwt, token("Bearer b"))},
		"a fresh signature":                          {http(`{"iam":{"callerId":"AIDAEXAMPLE"}}`, token("AWS4-HMAC-SHA256 a")), http(`{"iam":{"callerId":"AIDAEXAMPLE"}}`, token("AWS4-HMAC-SHA256 b"))},
		"a fresh signature in the query":             {http(`{"iam":{"callerId":"AIDAEXAMPLE"}}`, signed("a")), http(`{"iam":{"callerId":"AIDAEXAMPLE"}}`, signed("b"))},
		"the same, of a Cognito identity":            {http(`{"iam":{"cognitoIdentity":{"identityId":"i"}}}`, signed("a")), http(`{"iam":{"cognitoIdentity":{"identityId":"i"}}}`, signed("b"))},
		"the same, at a REST API":                    {restSigned(user, "a"), restSigned(user, "b")},
		"a cookie of a Cognito identity, at REST":    {restSigned(ofCognito, "a"), restSigned(ofCognito, "b")},
		"a signature of one without a role":          {restSigned(identity, "a"), restSigned(identity, "b")},
		"a certificate without a number":             {certified(nil), certified(&clientCert{})},
		"an authorizer that names nobody":            {url(nil), url(&events.LambdaFunctionURLRequestContextAuthorizerDescription{})},
		"the same, at a Function URL":                {urlSigned("a"), urlSigned("b")},
		"a fresh token of a Cognito user":            {rest(map[string]any{"claims": map[string]any{"sub": "a"}}, "Bearer a"), rest(map[string]any{"claims": map[string]any{"sub": "a"}}, "Bearer b")},
		"a fresh token of a principal, by HeaderKey": {byPrincipal("Bearer a"), byPrincipal("Bearer b")},
		"the latency of an authorizer":               {rest(map[string]any{"principalId": "p", "integrationLatency": 7}, "a"), rest(map[string]any{"principalId": "p", "integrationLatency": 41}, "a")},
		"the latency, without a principal":           {rest(map[string]any{"user": "u", "integrationLatency": 7}, "a"), rest(map[string]any{"user": "u", "integrationLatency": 41}, "a")},
		"the order of cookies": {
			http(`null`, func(e *httpRequest) { e.Cookies = []string{"a=1", "b=2"} }),
			http(`null`, func(e *httpRequest) { e.Cookies = []string{"b=2; a=1"} }),
		},
		"a semicolon after a cookie": {
			http(`null`, func(e *httpRequest) { e.Cookies = []string{"a=1"} }),
			http(`null`, func(e *httpRequest) { e.Cookies = []string{"a=1; "} }),
		},
		"the case of a header": {http(`null`, token("Bearer a")), http(`null`, func(e *httpRequest) { e.Headers["AUTHORIZATION"] = " Bearer a " })},
		"another agent":        {http(`null`, token("Bearer a")), http(`null`, func(e *httpRequest) { e.Headers["authorization"], e.Headers["user-agent"] = "Bearer a", "b" })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, err := c.first()
			again, errAgain := c.again()
			if first != again || err != nil || errAgain != nil {
				t.Errorf("%+v, %v\n%+v, %v", first, err, again, errAgain)
			}
		})
	}
}

// TestCaller shows that the key of a caller is never empty, and that
// credentials are nowhere in it.
func TestCaller(t *testing.T) {
	t.Parallel()
	e := plainHTTP()
	if k, err := keyfuncs.Caller(t.Context(), e); k != (lock.Key{Name: "nobody"}) || err != nil {
		t.Errorf("nobody: %+v, %v", k, err)
	}
	e.Headers["Authorization"] = "Bearer secret"
	k, err := keyfuncs.Caller(t.Context(), e)
	if k.Name != "nobody" || k.Payload == "" || strings.Contains(k.Payload, "secret") || err != nil {
		t.Errorf("%+v, %v", k, err)
	}
	byBody := keyfuncs.PayloadFrom(keyfuncs.HTTPBody[httpRequest](byPlaced), keyfuncs.Caller)
	e.Body = `{"order":7}`
	if of, err := byBody(t.Context(), e); of.Name != "order/7" || of.Payload != k.Payload || err != nil {
		t.Errorf("%+v, %v", of, err)
	}
	for what, event := range map[string]any{"the event": events.SQSEvent{}, "version": httpRequest{Version: "1.0"}} {
		_, err := keyfuncs.Caller(t.Context(), event)
		refused(t, "no caller in "+what, err, what, "")
	}
}

// TestHeaderKey shows that another header, and another caller, take the place
// of those of IdempotencyKey.
func TestHeaderKey(t *testing.T) {
	t.Parallel()
	type userKey struct{}
	byContext := func(ctx context.Context, _ httpRequest) (lock.Key, error) {
		user, _ := ctx.Value(userKey{}).(string)
		return lock.Key{Name: user}, nil
	}
	ctx := context.WithValue(t.Context(), userKey{}, "jane")
	e := plainHTTP()
	e.Headers["X-Request-Id"], e.Headers["Authorization"] = "r", "Bearer a"
	same, err := keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.Caller[httpRequest])(ctx, e)
	if want, _ := keyfuncs.IdempotencyKey(ctx, e); same != want || err != nil {
		t.Errorf("%+v, %v; want %+v", same, err, want)
	}
	for name, c := range map[string]struct {
		key  keyfuncs.Func[httpRequest]
		want string
	}{
		"another header": {keyfuncs.HeaderKey("x-request-id", keyfuncs.Caller[httpRequest]), "http/api/prod/nobody/r"},
		"another caller": {keyfuncs.HeaderKey("Idempotency-Key", byContext), "http/api/prod/jane/k"},
		"anybody":        {keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.Anonymous[httpRequest]), "http/api/prod/anonymous/k"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := c.key(ctx, e)
			if k.Name != c.want || err != nil {
				t.Errorf("%+v, %v; want %q", k, err, c.want)
			}
			other := e
			other.Headers = map[string]string{"Idempotency-Key": "k", "X-Request-Id": "r", "Authorization": "Bearer b"}
			if o, err := c.key(ctx, other); (o == k) != (name != "another header") || err != nil {
				t.Errorf("with a fresh token %+v, %v; before %+v", o, err, k)
			}
		})
	}
	down := errors.New("the database of callers is down")
	broken := keyfuncs.HeaderKey("Idempotency-Key", func(context.Context, httpRequest) (lock.Key, error) { return lock.Key{}, down })
	if _, err := broken(t.Context(), e); err != down {
		t.Errorf("the error of a caller became %v", err)
	}
	unnamed := keyfuncs.HeaderKey("Idempotency-Key", byContext)
	if k, err := unnamed(t.Context(), e); !errors.As(err, new(*lock.NoKeyError)) || !strings.Contains(err.Error(), "Anonymous") || k != (lock.Key{}) {
		t.Errorf("no caller: %+v, %v", k, err)
	}
	delete(e.Headers, "Idempotency-Key")
	if k, err := keyfuncs.Optional(unnamed)(t.Context(), e); !errors.Is(err, keyfuncs.ErrNoLock) {
		t.Errorf("a GET without key and caller: %+v, %v", k, err)
	}
}

// TestWhoHasLooked shows what package middleware is told about a key: whether
// it looked for the sender of the request, and found one.
func TestWhoHasLooked(t *testing.T) { // F61
	t.Parallel()
	byHandler := func(context.Context, httpRequest) (lock.Key, error) { return lock.Key{Name: "jane"}, nil }
	for name, c := range map[string]struct {
		key           keyfuncs.Func[httpRequest]
		known, looked bool
	}{
		"nobody":      {keyfuncs.IdempotencyKey[httpRequest], false, true},
		"anybody":     {keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.Anonymous[httpRequest]), false, true},
		"the handler": {keyfuncs.HeaderKey("Idempotency-Key", byHandler), true, true},
		"a target":    {keyfuncs.HTTPTarget[httpRequest], true, false},
	} {
		var asker invocation.Asker
		_, err := c.key(invocation.WithAsker(t.Context(), &asker), plainHTTP())
		if known, looked := asker.Known(); known != c.known || looked != c.looked || err != nil {
			t.Errorf("%s: known %t, looked %t, %v; want %t, %t", name, known, looked, err, c.known, c.looked)
		}
	}
}

// TestRequestsOfOwnTypes shows that events that users define or extend have the
// key of the request in them.
func TestRequestsOfOwnTypes(t *testing.T) {
	t.Parallel()
	type defined httpRequest
	type embedding struct {
		httpRequest
		Tenant string
	}
	type pointing struct{ *httpRequest }
	e := plainHTTP()
	e.Headers["Authorization"], e.Body = "Bearer a", `{"order":7}`
	want := expect.Value(keyfuncs.IdempotencyKey(t.Context(), e))(t)
	ownType(t, want, defined(e))
	ownType(t, want, embedding{e, "north"})
	ownType(t, want, &embedding{e, "north"})
	ownType(t, want, pointing{&e})
	for name, event := range map[string]any{"nil": nil, "queue": events.SQSEvent{}, "nil inside": pointing{}, "map": map[string]any{}} {
		if k, err := keyfuncs.IdempotencyKey(t.Context(), event); !errors.As(err, new(*lock.NoKeyError)) || k != (lock.Key{}) {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
}

func ownType[E any](t *testing.T, want lock.Key, e E) {
	t.Helper()
	if k, err := keyfuncs.IdempotencyKey(t.Context(), e); k != want || err != nil {
		t.Errorf("%T: %+v, %v; want %+v", e, k, err, want)
	}
	if k, err := keyfuncs.HTTPBody[E](byPlaced)(t.Context(), e); k.Name != "order/7" || err != nil {
		t.Errorf("%T: %+v, %v", e, k, err)
	}
}

// TestCallerByAnyContext shows that what a Lambda authorizer says counts,
// whatever it calls it: the names that other authorizers use, too.
func TestCallerByAnyContext(t *testing.T) {
	t.Parallel()
	request := func(said map[string]any) events.APIGatewayV2HTTPRequest {
		e := events.APIGatewayV2HTTPRequest{RawPath: "/orders", Headers: map[string]string{"idempotency-key": "k", "authorization": "same"}}
		e.RequestContext.APIID, e.RequestContext.HTTP.Method = "a1b2c3", "POST"
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: said}
		return e
	}
	restOf := func(said map[string]any) events.APIGatewayProxyRequest {
		e := events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/orders", Headers: map[string]string{"idempotency-key": "k"}}
		e.RequestContext.APIID, e.RequestContext.Authorizer = "a1b2c3", said
		return e
	}
	for _, name := range []string{"principalId", "claims", "scopes", "tenant"} {
		var keys []lock.Key
		for _, who := range []any{"alice", "eve", map[string]any{"user": "alice"}, map[string]any{"user": "eve"}} {
			keys = append(keys, keyOf(t, keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], request(map[string]any{name: who})))
			if text, ok := who.(string); ok { // a REST API has no other values
				keys = append(keys, keyOf(t, keyfuncs.IdempotencyKey[events.APIGatewayProxyRequest], restOf(map[string]any{name: text})))
			}
		}
		for i, k := range keys {
			for _, other := range keys[i+1:] {
				if k == other {
					t.Errorf("%s: one key for two callers: %+v", name, k)
				}
			}
		}
	}
}

// TestCallerByRoundedNumber shows that no answer is stored for a caller whose
// number Go rounds, because another may have the same. An HTTP API leaves the
// numbers of a Lambda authorizer unchanged.
func TestCallerByRoundedNumber(t *testing.T) { // F61
	t.Parallel()
	for said, told := range map[string]bool{
		`{"id":9007199254740991}`:      true,
		`{"id":1.5}`:                   true,
		`{"id":"9007199254740993"}`:    true,
		`{"id":9007199254740993}`:      false,
		`{"id":-9007199254740993}`:     false,
		`{"of":{"ids":[1e300]}}`:       false,
		`{"of":{"ids":[12,"a",null]}}`: true,
	} {
		var e events.APIGatewayV2HTTPRequest
		e.RequestContext.Authorizer = decoded[*events.APIGatewayV2HTTPRequestContextAuthorizerDescription](t, `{"lambda":`+said+`}`)
		_, err := keyfuncs.Caller(t.Context(), e)
		if refused := errors.As(err, new(*lock.NoKeyError)); refused == told || (err == nil) != told {
			t.Errorf("%s: %v", said, err)
		}
	}
}

// TestCallerOfAMessage shows that a message of a WebSocket API, which has no
// headers, is of the connection through which it came.
func TestCallerOfAMessage(t *testing.T) { // F28, F61
	t.Parallel()
	through := func(connection string, authorized any) lock.Key {
		e := plainSocket()
		e.Headers, e.RequestContext.EventType, e.RequestContext.RouteKey = nil, "MESSAGE", "placeOrder"
		e.RequestContext.ConnectionID, e.RequestContext.Authorizer = connection, authorized
		return keyOf(t, keyfuncs.Caller[webSocket], e)
	}
	for name, authorized := range map[string]any{
		"nobody":        nil,
		"one principal": map[string]any{"principalId": "user"},
	} {
		if a, b := through("a", authorized), through("b", authorized); a == b || a != through("a", authorized) {
			t.Errorf("%s: %+v and %+v", name, a, b)
		}
	}
}
