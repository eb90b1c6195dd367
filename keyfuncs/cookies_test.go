package keyfuncs_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func withCookies(cookies ...string) httpRequest {
	e := plainHTTP()
	e.Cookies = cookies
	return e
}

// TestSessionCookie shows which cookies make a caller another one.
func TestSessionCookie(t *testing.T) { // F61
	t.Parallel()
	key := keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.SessionCookie[httpRequest]("session", "__Host-cart"))
	first := keyOf(t, key, withCookies("session=a", "_ga_1=1", "cart=7"))
	nobody := keyOf(t, key, withCookies())
	for name, c := range map[string]struct {
		e    httpRequest
		want lock.Key
	}{
		"analytics, consent, CSRF, a sticky session": {withCookies("session=a", "_ga_1=2", "__cf_bm=x", "AWSALB=y", "CookieConsent=z", "csrf=w", "cart=7"), first},
		"another order":    {withCookies("cart=7", "session=a"), first},
		"in a header":      {func() httpRequest { e := plainHTTP(); e.Headers["Cookie"] = "cart=7;session=a"; return e }(), first},
		"none that counts": {withCookies("_ga_1=1", "x-session=a", "mysession=a"), nobody},
	} {
		if k := keyOf(t, key, c.e); k != c.want {
			t.Errorf("%s: %+v, want %+v", name, k, c.want)
		}
	}
	distinct := map[lock.Key]string{first: "first", nobody: "nobody"}
	for name, e := range map[string]httpRequest{
		"another session":        withCookies("session=b", "cart=7"),
		"another cart":           withCookies("session=a", "__Host-cart=8"),
		"no cart":                withCookies("session=a"),
		"in parts":               withCookies("session.0=a", "session.1=b"),
		"the second part":        withCookies("session.0=a", "session.1=c"),
		"another prefix":         withCookies("__Secure-session=c"),
		"another case":           withCookies("Session=d"),
		"with spaces":            withCookies(" session = e"),
		"partitioned":            withCookies("__Host-Http-session=f"),
		"two of one name":        withCookies("session=a", "session=b"),
		"a token and no session": func() httpRequest { e := plainHTTP(); e.Headers["Authorization"] = "Bearer a"; return e }(),
	} {
		k := keyOf(t, key, e)
		if other, ok := distinct[k]; ok {
			t.Errorf("%s is %s", name, other)
		}
		distinct[k] = name
	}
	for _, use := range []func(){
		func() { keyfuncs.SessionCookie[httpRequest]() }, func() { keyfuncs.SessionCookie[httpRequest]("session=") },
		func() { keyfuncs.SessionCookie[httpRequest]("") }, func() { keyfuncs.SessionCookie[httpRequest]("__Host-") },
		func() { keyfuncs.SessionCookie[httpRequest]("my session") }, func() { keyfuncs.SessionCookie[httpRequest]("session\x7f") },
		func() { keyfuncs.SessionCookie[lock.Key]("session") },
	} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.HasPrefix(p, "lambdalock: keyfuncs.SessionCookie") {
					t.Errorf("panicked with %q", p)
				}
			}()
			use()
		}()
	}
}

// TestDomain shows that the domain counts, for the whole request and for the
// caller alone, and how it may be spelled.
func TestDomain(t *testing.T) { // F61
	t.Parallel()
	alb := func(headers map[string]string, multi http.Header) albRequest {
		e := plainALB()
		e.MultiValueHeaders = multi
		for name, value := range headers {
			e.Headers[name] = value
		}
		return e
	}
	shop := alb(map[string]string{"host": "shop.example"}, nil)
	for name, c := range map[string]struct {
		e    albRequest
		same bool
	}{
		"upper case":           {alb(map[string]string{"Host": "Shop.Example"}, nil), true},
		"multi-value":          {alb(nil, http.Header{"HOST": {"shop.example"}}), true},
		"another":              {alb(map[string]string{"host": "outlet.example"}, nil), false},
		"none":                 {alb(nil, nil), false},
		"two":                  {alb(nil, http.Header{"Host": {"shop.example", "outlet.example"}}), false},
		"two spellings":        {alb(map[string]string{"host": "shop.example", "Host": "outlet.example"}, nil), false},
		"another, by a proxy":  {alb(map[string]string{"host": "shop.example", "x-forwarded-host": "outlet.example"}, nil), false},
		"another name of both": {alb(map[string]string{"host": "shop.example/outlet.example"}, nil), false},
	} {
		for _, key := range []keyfuncs.Func[albRequest]{
			keyfuncs.IdempotencyKey[albRequest], keyfuncs.Caller[albRequest], keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.Anonymous[albRequest]),
			keyfuncs.SessionCookie[albRequest]("s"),
		} {
			if same := keyOf(t, key, c.e) == keyOf(t, key, shop); same != c.same {
				t.Errorf("%s: %t, want %t: %+v", name, same, c.same, keyOf(t, key, c.e))
			}
		}
	}
	for name, pair := range map[string][2]lock.Key{
		"REST": {
			domainKey(t, plainREST, func(e *restRequest, d string) { e.RequestContext.DomainName = d }, "a.example"),
			domainKey(t, plainREST, func(e *restRequest, d string) { e.RequestContext.DomainName = d }, "b.example"),
		},
		"HTTP": {
			domainKey(t, plainHTTP, func(e *httpRequest, d string) { e.RequestContext.DomainName = d }, "a.example"),
			domainKey(t, plainHTTP, func(e *httpRequest, d string) { e.RequestContext.DomainName = d }, "b.example"),
		},
		"WebSocket": {
			domainKey(t, plainSocket, func(e *webSocket, d string) { e.RequestContext.DomainName = d }, "a.example"),
			domainKey(t, plainSocket, func(e *webSocket, d string) { e.RequestContext.DomainName = d }, "b.example"),
		},
		"Function URL": {
			domainKey(t, plainURL, func(e *urlRequest, d string) { e.RequestContext.DomainName = d }, "a.lambda-url.example"),
			domainKey(t, plainURL, func(e *urlRequest, d string) { e.RequestContext.DomainName = d }, "b.lambda-url.example"),
		},
	} {
		if pair[0] == pair[1] || pair[0].Name != pair[1].Name {
			t.Errorf("%s: %+v", name, pair)
		}
	}
}

func domainKey[E any](t *testing.T, plain func() E, at func(*E, string), domain string) lock.Key {
	t.Helper()
	e := plain()
	at(&e, domain)
	return keyOf(t, keyfuncs.IdempotencyKey[E], e)
}
