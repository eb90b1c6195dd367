package keyfuncs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// senderKind is one way in which the sender of a request is known: what of the
// event is in the Name, what is compared in the Payload, and what changes
// between two tries of one sender. The table is in docs/GUIDE.md.
type senderKind struct {
	event, by, name, compared, ignored string
	// keys has the key of a request under "", and by each part of the other texts
	// that of a request in which this part is another one.
	keys func(t *testing.T) map[string]lock.Key
}

const (
	headersCompared = "`Authorization`, cookies, `X-Api-Key`, client certificate"
	domainCompared  = "domain"
)

var identities = []senderKind{
	{"REST and WebSocket API", "Cognito authorizer", "`iss`, `sub`", domainCompared, "`Authorization`, cookies, other claims", claimedREST},
	{"HTTP API", "JWT authorizer", "`iss`, `sub`", domainCompared, "`Authorization`, cookies, other claims", claimedHTTP},
	{"REST, WebSocket and HTTP API", "IAM, for a Cognito identity", "identity", domainCompared, "`Authorization`, cookies", federated},
	{"REST, WebSocket and HTTP API, Function URL", "IAM", "user or role", domainCompared + ", cookies, `X-Api-Key`, client certificate", "`Authorization`, session of a role", signed},
	{"REST and WebSocket API", "Lambda authorizer", "`principalId`", domainCompared + ", its context, " + headersCompared + ", API key that it returns", "`integrationLatency`", byFunctionREST},
	{"HTTP API", "Lambda authorizer", "", domainCompared + ", its context, " + headersCompared, "", byFunctionHTTP},
	{"load balancer", "OIDC or Cognito", "`x-amzn-oidc-identity`", domainCompared + ", `x-amzn-oidc-accesstoken`", "`x-amzn-oidc-data`, cookies", byBalancer},
	{"load balancer", "nobody, and a client sends `x-amzn-oidc-identity`", "`x-amzn-oidc-identity`", domainCompared + ", " + headersCompared, "`x-amzn-oidc-data`", forged},
	{"message of a WebSocket API", "your handler, or nobody", "", domainCompared + ", connection", "", socketMessage},
	{"every other", "your handler, or nobody", "", domainCompared + ", " + headersCompared, "other headers", byHandler},
}

// TestIdentities shows that each cell of the table is true.
func TestIdentities(t *testing.T) { // F61
	t.Parallel()
	for _, c := range identities {
		t.Run(c.event+", "+c.by, func(t *testing.T) {
			t.Parallel()
			keys := c.keys(t)
			first := keys[""]
			delete(keys, "")
			check := func(cell string, is func(k lock.Key) bool) {
				for part := range strings.SplitSeq(cell, ", ") {
					k, ok := keys[part]
					if part != "" && (!ok || !is(k)) {
						t.Errorf("%s: %+v, of the first %+v", part, k, first)
					}
					delete(keys, part)
				}
			}
			check(c.name, func(k lock.Key) bool { return k.Name != first.Name })
			check(c.compared, func(k lock.Key) bool { return k.Name == first.Name && k.Payload != first.Payload })
			check(c.ignored, func(k lock.Key) bool { return k == first })
			if len(keys) > 0 {
				t.Errorf("not in the table: %q", slices.Sorted(maps.Keys(keys)))
			}
		})
	}
}

// varied returns the keys of a request, and of what each change makes of it.
func varied[E any](t *testing.T, build func() E, changes map[string]func(*E)) map[string]lock.Key {
	t.Helper()
	keys := map[string]lock.Key{"": keyOf(t, keyfuncs.Caller[E], build())}
	for part, change := range changes {
		e := build()
		change(&e)
		keys[part] = keyOf(t, keyfuncs.Caller[E], e)
	}
	return keys
}

func withHeader[E any](headers func(*E) map[string]string, name string) func(*E) {
	return func(e *E) { headers(e)[name] = "another" }
}

func restHeaders(e *restRequest) map[string]string { return e.Headers }
func httpHeaders(e *httpRequest) map[string]string { return e.Headers }
func albHeaders(e *albRequest) map[string]string   { return e.Headers }

func claimedREST(t *testing.T) map[string]lock.Key {
	t.Helper()
	claim := func(e *restRequest) map[string]any { return e.RequestContext.Authorizer["claims"].(map[string]any) }
	return varied(t, func() restRequest {
		e := plainREST()
		e.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"iss": "i", "sub": "s", "exp": "1"}, "scopes": nil, "principalId": "user"}
		return e
	}, map[string]func(*restRequest){
		"`iss`": func(e *restRequest) { claim(e)["iss"] = "j" }, "`sub`": func(e *restRequest) { claim(e)["sub"] = "r" },
		"domain":          func(e *restRequest) { e.RequestContext.DomainName = "another" },
		"`Authorization`": withHeader(restHeaders, "authorization"), "cookies": withHeader(restHeaders, "cookie"),
		"other claims": func(e *restRequest) { claim(e)["exp"], e.RequestContext.Authorizer["scopes"] = "2", "admin" },
	})
}

type authorizedHTTP = events.APIGatewayV2HTTPRequestContextAuthorizerDescription

// httpBy returns a function that builds a request that an authorizer let
// through.
func httpBy(t *testing.T, authorizer string) func() httpRequest {
	return func() httpRequest {
		e := plainHTTP()
		e.RequestContext.Authorizer = decoded[*authorizedHTTP](t, authorizer)
		return e
	}
}

func httpDomain(e *httpRequest)  { e.RequestContext.DomainName = "another" }
func httpCookies(e *httpRequest) { e.Cookies = []string{"another=1"} }
func httpCertificate(e *httpRequest) {
	e.RequestContext.Authentication.ClientCert = clientCert2{IssuerDN: "ca", SerialNumber: "1"}
}

func claimedHTTP(t *testing.T) map[string]lock.Key {
	t.Helper()
	claim := func(name string) func(*httpRequest) {
		return func(e *httpRequest) { e.RequestContext.Authorizer.JWT.Claims[name] = "another" }
	}
	return varied(t, httpBy(t, `{"jwt":{"claims":{"iss":"i","sub":"s","exp":"1"}}}`), map[string]func(*httpRequest){
		"`iss`": claim("iss"), "`sub`": claim("sub"), "other claims": claim("exp"), "domain": httpDomain,
		"`Authorization`": withHeader(httpHeaders, "authorization"), "cookies": httpCookies,
	})
}

func federated(t *testing.T) map[string]lock.Key {
	t.Helper()
	return varied(t, httpBy(t, `{"iam":{"callerId":"AROA:1","cognitoIdentity":{"identityId":"c"}}}`), map[string]func(*httpRequest){
		"identity":        func(e *httpRequest) { e.RequestContext.Authorizer.IAM.CognitoIdentity.IdentityID = "d" },
		"`Authorization`": withHeader(httpHeaders, "authorization"), "cookies": httpCookies, "domain": httpDomain,
	})
}

func signed(t *testing.T) map[string]lock.Key {
	t.Helper()
	return varied(t, httpBy(t, `{"iam":{"callerId":"AROA:1"}}`), map[string]func(*httpRequest){
		"user or role":      func(e *httpRequest) { e.RequestContext.Authorizer.IAM.CallerID = "AIDA" },
		"session of a role": func(e *httpRequest) { e.RequestContext.Authorizer.IAM.CallerID = "AROA:2" },
		"`Authorization`":   withHeader(httpHeaders, "authorization"), "`X-Api-Key`": withHeader(httpHeaders, "x-api-key"),
		"cookies": httpCookies, "domain": httpDomain, "client certificate": httpCertificate,
	})
}

func byFunctionREST(t *testing.T) map[string]lock.Key {
	t.Helper()
	said := func(name string) func(*restRequest) {
		return func(e *restRequest) { e.RequestContext.Authorizer[name] = "another" }
	}
	return varied(t, func() restRequest {
		e := plainREST()
		e.RequestContext.Authorizer = map[string]any{"principalId": "user", "plan": "basic", "integrationLatency": 7}
		return e
	}, map[string]func(*restRequest){
		"`principalId`": said("principalId"), "its context": said("plan"), "`integrationLatency`": said("integrationLatency"),
		"domain":          func(e *restRequest) { e.RequestContext.DomainName = "another" },
		"`Authorization`": withHeader(restHeaders, "authorization"), "cookies": withHeader(restHeaders, "cookie"), "`X-Api-Key`": withHeader(restHeaders, "x-api-key"),
		"client certificate": func(e *restRequest) {
			e.RequestContext.Identity.ClientCert = &clientCert{IssuerDN: "ca", SerialNumber: "1"}
		},
		"API key that it returns": func(e *restRequest) { e.RequestContext.Identity.APIKey = "another" },
	})
}

func byFunctionHTTP(t *testing.T) map[string]lock.Key {
	t.Helper()
	return varied(t, httpBy(t, `{"lambda":{"plan":"basic"}}`), map[string]func(*httpRequest){
		"its context": func(e *httpRequest) { e.RequestContext.Authorizer.Lambda["plan"] = "another" },
		"domain":      httpDomain, "cookies": httpCookies, "client certificate": httpCertificate,
		"`Authorization`": withHeader(httpHeaders, "authorization"), "`X-Api-Key`": withHeader(httpHeaders, "x-api-key"),
	})
}

func balancer(headers ...string) func() albRequest {
	return func() albRequest {
		e := plainALB()
		for _, name := range headers {
			e.Headers[name] = "first"
		}
		return e
	}
}

func byBalancer(t *testing.T) map[string]lock.Key {
	t.Helper()
	return varied(t, balancer("x-amzn-oidc-identity", "x-amzn-oidc-accesstoken", "x-amzn-oidc-data"), map[string]func(*albRequest){
		"`x-amzn-oidc-identity`": withHeader(albHeaders, "x-amzn-oidc-identity"), "domain": withHeader(albHeaders, "host"),
		"`x-amzn-oidc-accesstoken`": withHeader(albHeaders, "x-amzn-oidc-accesstoken"),
		"`x-amzn-oidc-data`":        withHeader(albHeaders, "x-amzn-oidc-data"), "cookies": withHeader(albHeaders, "cookie"),
	})
}

func forged(t *testing.T) map[string]lock.Key {
	t.Helper()
	return varied(t, balancer("x-amzn-oidc-identity", "x-amzn-oidc-data"), map[string]func(*albRequest){
		"`x-amzn-oidc-identity`": withHeader(albHeaders, "x-amzn-oidc-identity"), "domain": withHeader(albHeaders, "host"),
		"`x-amzn-oidc-data`": withHeader(albHeaders, "x-amzn-oidc-data"), "cookies": withHeader(albHeaders, "cookie"),
		"`Authorization`": withHeader(albHeaders, "authorization"), "`X-Api-Key`": withHeader(albHeaders, "x-api-key"),
		"client certificate": withHeader(albHeaders, "x-amzn-mtls-clientcert-serial-number"),
	})
}

func socketMessage(t *testing.T) map[string]lock.Key {
	t.Helper()
	return varied(t, func() webSocket {
		e := plainSocket()
		e.Headers, e.RequestContext.EventType, e.RequestContext.ConnectionID = nil, "MESSAGE", "first"
		return e
	}, map[string]func(*webSocket){
		"connection": func(e *webSocket) { e.RequestContext.ConnectionID = "another" },
		"domain":     func(e *webSocket) { e.RequestContext.DomainName = "another" },
	})
}

func byHandler(t *testing.T) map[string]lock.Key {
	t.Helper()
	return varied(t, plainHTTP, map[string]func(*httpRequest){
		"domain": httpDomain, "cookies": httpCookies, "client certificate": httpCertificate, "other headers": withHeader(httpHeaders, "x-auth-token"),
		"`Authorization`": withHeader(httpHeaders, "authorization"), "`X-Api-Key`": withHeader(httpHeaders, "x-api-key"),
	})
}
