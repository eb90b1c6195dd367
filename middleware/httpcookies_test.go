package middleware_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
)

// asGuest makes a request one without credentials.
func asGuest(e map[string]any) {
	sentWith("")(e)
	delete(e, "cookies")
	for _, field := range []string{"headers", "multiValueHeaders"} {
		if headers, ok := e[field].(map[string]any); ok {
			for name := range headers {
				if slices.Contains([]string{"cookie", "authorization", "x-api-key", "x-amzn-oidc-accesstoken", "x-amzn-oidc-identity"}, strings.ToLower(name)) {
					delete(headers, name)
				}
			}
		}
	}
}

// TestCookieForNobody shows that a response that sets a cookie is not replayed
// to a client without credentials, on any route and however the key is made,
// and that it is to one with them.
func TestCookieForNobody(t *testing.T) { // F61
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		for _, key := range []keyOption{required, own, anonymous} {
			for _, header := range []string{"Set-Cookie", "set-cookie", "SET-COOKIE"} {
				f, runs := newFixture(), 0
				call := r(t, f, key, func() (reply, error) {
					runs++
					return reply{status: http.StatusOK, headers: map[string]string{header: "session=s3cr3t; HttpOnly"}, body: "welcome"}, nil
				})
				guest := edited(t, doc, asGuest)
				if got, err := call(guest); err != nil || got.headers["set-cookie"] == "" {
					t.Fatalf("%+v, %v", got, err)
				}
				got, err := call(guest)
				wantProblem(t, got, err, http.StatusConflict, "already completed")
				if got.headers["set-cookie"] != "" || runs != 1 || f.count(lock.OutcomeResultDropped) != 1 {
					t.Errorf("%+v, %d runs, %q", got, runs, f.outcomes())
				}
			}
		}
		f := newFixture()
		call := r(t, f, required, func() (reply, error) {
			return reply{status: http.StatusOK, headers: map[string]string{"Set-Cookie": "session=fresh"}}, nil
		})
		for _, mark := range []string{"", "true"} {
			if got, err := call(edited(t, doc, sentWith("Bearer alice"))); err != nil || got.mark() != mark || got.headers["set-cookie"] == "" {
				t.Errorf("%+v, %v; want mark %q", got, err, mark)
			}
		}
	})
}

// TestWhoGetsACookie shows which callers count as somebody.
func TestWhoGetsACookie(t *testing.T) { // F61
	t.Parallel()
	byContext := func(context.Context, v2Event) (lock.Key, error) { return lock.Key{Name: "jane"}, nil }
	byAmount := func(context.Context, v2Event) (lock.Key, error) { return lock.Key{Name: "17"}, nil }
	ownKey := func(context.Context, v2Event) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
	session := keyfuncs.SessionCookie[v2Event]("session")
	for name, c := range map[string]struct {
		key      keyfuncs.Func[v2Event]
		cookies  []string
		replayed bool
	}{
		"a session":                             {keyfuncs.IdempotencyKey[v2Event], []string{"session=a"}, true},
		"any cookie, which is compared":         {keyfuncs.IdempotencyKey[v2Event], []string{"_ga=1"}, true},
		"no cookie":                             {keyfuncs.IdempotencyKey[v2Event], nil, false},
		"SessionCookie":                         {keyfuncs.HeaderKey("Idempotency-Key", session), []string{"session=a"}, true},
		"SessionCookie, and another one":        {keyfuncs.HeaderKey("Idempotency-Key", session), []string{"_ga=1"}, false},
		"named by the user's code":              {keyfuncs.HeaderKey("Idempotency-Key", byContext), nil, true},
		"Anonymous":                             {keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.Anonymous[v2Event]), []string{"session=a"}, false},
		"own payload, a session":                {keyfuncs.PayloadFrom(ownKey, byAmount), []string{"session=a"}, false},
		"own payload and Caller":                {keyfuncs.PayloadFrom(ownKey, keyfuncs.Join(byAmount, keyfuncs.Caller[v2Event])), []string{"session=a"}, true},
		"own payload, no cookie":                {keyfuncs.PayloadFrom(ownKey, byAmount), nil, false},
		"own payload and SessionCookie":         {keyfuncs.PayloadFrom(ownKey, keyfuncs.Join(byAmount, session)), []string{"_ga=1"}, false},
		"own payload and SessionCookie, found":  {keyfuncs.PayloadFrom(ownKey, keyfuncs.Join(byAmount, session)), []string{"session=a"}, true},
		"SessionCookie, no payload":             {withoutPayload(keyfuncs.HeaderKey("Idempotency-Key", session)), []string{"_ga=1"}, false},
		"hashed":                                {keyfuncs.HMAC(keyfuncs.HeaderKey("Idempotency-Key", session), []byte("0123456789abcdef")), []string{"_ga=1"}, false},
		"with a context of the user's":          {detached(keyfuncs.IdempotencyKey[v2Event]), nil, false},
		"with a context of the user's, session": {detached(keyfuncs.IdempotencyKey[v2Event]), []string{"session=a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := middleware.WithLock(c.key, func(context.Context, v2Event) (events.APIGatewayV2HTTPResponse, error) {
				return events.APIGatewayV2HTTPResponse{StatusCode: 200, Cookies: []string{"__Host-session=b; Path=/; Secure; Partitioned"}}, nil
			}, newFixture().options()...)
			e := v2Event{RawPath: "/", Headers: map[string]string{"idempotency-key": "k"}, Cookies: c.cookies}
			e.RequestContext.APIID, e.RequestContext.HTTP.Method = "api", "POST"
			for _, again := range []bool{false, true} {
				got, err := h(t.Context(), e)
				if want := !again || c.replayed; err != nil || (len(got.Cookies) > 0) != want || want != (got.StatusCode == http.StatusOK) {
					t.Errorf("again: %t: %+v, %v", again, got, err)
				}
			}
		})
	}
}

// TestCookieOfSeveralKeys: one key that compares no credentials is enough for
// the answer, so it is enough to withhold a cookie.
func TestCookieOfSeveralKeys(t *testing.T) { // F61
	t.Parallel()
	byAmount := func(context.Context, v2Event) (lock.Key, error) { return lock.Key{Name: "17"}, nil }
	named := func(name string) keyfuncs.Func[v2Event] {
		return func(context.Context, v2Event) (lock.Key, error) { return lock.Key{Name: name, Event: "e"}, nil }
	}
	for name, c := range map[string]struct {
		keys     keyfuncs.Keys[v2Event]
		replayed bool
	}{
		"both of the caller":            {keyfuncs.All(named("a"), named("b")), true},
		"the first of an amount":        {keyfuncs.All(keyfuncs.PayloadFrom(named("a"), byAmount), named("b")), false},
		"the last of an amount":         {keyfuncs.All(named("a"), keyfuncs.PayloadFrom(named("b"), byAmount)), false},
		"one of an amount and a mutex":  {keyfuncs.All(keyfuncs.PayloadFrom(named("a"), byAmount), mutex(named("b"))), false},
		"one of the caller and a mutex": {keyfuncs.All(named("a"), mutex(named("b"))), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := middleware.WithLocks(c.keys, func(context.Context, v2Event) (events.APIGatewayV2HTTPResponse, error) {
				return events.APIGatewayV2HTTPResponse{StatusCode: 200, Cookies: []string{"session=b"}}, nil
			}, newFixture().options()...)
			e := v2Event{RawPath: "/", Headers: map[string]string{"authorization": "Bearer x"}}
			e.RequestContext.APIID, e.RequestContext.HTTP.Method = "api", "POST"
			for _, again := range []bool{false, true} {
				got, err := h(t.Context(), e)
				if want := !again || c.replayed; err != nil || (len(got.Cookies) > 0) != want || want != (got.StatusCode == http.StatusOK) {
					t.Errorf("again: %t: %+v, %v", again, got, err)
				}
			}
		})
	}
}

// mutex is a key function of the user's that takes only the name of another
// key.
func mutex[E any](key keyfuncs.Func[E]) keyfuncs.Func[E] {
	return func(ctx context.Context, e E) (lock.Key, error) {
		k, err := key(ctx, e)
		return lock.Key{Name: k.Name}, err
	}
}

// detached is a key function of the user's that passes no context on.
func detached[E any](key keyfuncs.Func[E]) keyfuncs.Func[E] {
	return func(_ context.Context, e E) (lock.Key, error) { return key(context.Background(), e) }
}

// withoutPayload is a key function of the user's that takes what it needs of
// another key.
func withoutPayload[E any](key keyfuncs.Func[E]) keyfuncs.Func[E] {
	return func(ctx context.Context, e E) (lock.Key, error) {
		k, err := key(ctx, e)
		return lock.Key{Name: k.Name, Event: k.Event}, err
	}
}

// TestCookieOfAnotherRequest shows that a response that sets a cookie is
// neither stored for a client whose key of its own compares no credentials, nor
// replayed to one if it was stored: any text would do as a credential.
func TestCookieOfAnotherRequest(t *testing.T) { // F61
	t.Parallel()
	f := newFixture()
	handle := func(context.Context, v2Event) (ownResponse, error) {
		return ownResponse{Code: 200, Headers: map[string]string{"Set-Cookie": "session=b"}}, nil
	}
	named := middleware.WithLock(keyfuncs.HeaderKey("K", func(context.Context, v2Event) (lock.Key, error) { return lock.Key{Name: "p"}, nil }), handle, f.options()...)
	stranger := middleware.WithLock(func(context.Context, v2Event) (lock.Key, error) {
		k := f.of(lock.OutcomeAcquired)
		if len(k) == 0 {
			return lock.Key{Name: "n", Event: "e", Payload: "p"}, nil
		}
		return k[0].Key, nil
	}, handle, f.options()...)
	for name, first := range map[string]func(context.Context, v2Event) (ownResponse, error){"named": named, "not named": stranger} {
		f.forget()
		e := v2Event{RawPath: "/", Headers: map[string]string{"k": name, "authorization": "Bearer alice"}}
		e.RequestContext.APIID, e.RequestContext.HTTP.Method = "api", "POST"
		if got, err := first(t.Context(), e); err != nil || got.Code != 200 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		e.Headers["authorization"] = "x"
		if got, err := stranger(t.Context(), e); err != nil || got.Code != http.StatusConflict || got.Headers["Set-Cookie"] != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestCookieOfAnUnreadableRequest shows the same where not all of what could
// name the caller can be read, though some of it can.
func TestCookieOfAnUnreadableRequest(t *testing.T) { // F61
	t.Parallel()
	h := middleware.WithLock(func(context.Context, json.RawMessage) (lock.Key, error) {
		return lock.Key{Name: "n", Event: "e", Payload: "p"}, nil
	}, func(context.Context, json.RawMessage) (any, error) {
		return json.RawMessage(`{"statusCode":200,"headers":{"Set-Cookie":"session=b"}}`), nil
	}, newFixture().options()...)
	for i, doc := range []string{`{"headers":{"authorization":"alice","age":1}}`, `{"headers":{"authorization":"mallory","age":1}}`} {
		got, err := h(t.Context(), json.RawMessage(doc))
		b, _ := json.Marshal(got)
		if err != nil || strings.Contains(string(b), "session=b") != (i == 0) {
			t.Errorf("%s: %s, %v", doc, b, err)
		}
	}
}

// TestCookieIsNotInTheTable shows that a response which sets a cookie for
// nobody is not stored, and that this is reported only where it would be.
func TestCookieIsNotInTheTable(t *testing.T) { // F61
	t.Parallel()
	for name, c := range map[string]struct {
		opts    []middleware.Option
		dropped int
	}{"by default": {nil, 1}, "OnCompleted(Fail)": {[]middleware.Option{middleware.OnCompleted(middleware.Fail)}, 0}} {
		f := newFixture()
		h := middleware.WithLock(lockAll, func(context.Context, v2Event) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Cookies: []string{"session=s3cr3t"}}, nil
		}, f.options(c.opts...)...)
		if got, err := h(t.Context(), v2Event{}); err != nil || len(got.Cookies) != 1 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		for row, err := range f.faulty.Store.(driver.Inspector).Rows(t.Context(), "") {
			if err != nil || len(row.Memory.Completed) != 1 || row.Memory.Result.Event != "" {
				t.Errorf("%s: %+v, %v", name, row, err)
			}
		}
		if n := f.count(lock.OutcomeResultDropped); n != c.dropped {
			t.Errorf("%s: %d reports of a dropped result, want %d", name, n, c.dropped)
		}
	}
}

// TestCookieWithoutGateway shows that a caller is known by what any of the
// gateways would know it by, where nothing shows which one sent the request.
func TestCookieWithoutGateway(t *testing.T) { // F61
	t.Parallel()
	for doc, known := range map[string]bool{
		`{"cookies":["session=a"]}`: true, `{"headers":{"cookie":"session=a"}}`: true, `{"headers":{"accept":"*/*"}}`: false,
		`{"requestContext":{"identity":{"cognitoIdentityId":"jane"}}}`: true,
	} {
		h := middleware.WithLock(func(context.Context, json.RawMessage) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil },
			func(context.Context, json.RawMessage) (any, error) {
				return json.RawMessage(`{"statusCode":200,"headers":{"Set-Cookie":"session=b"}}`), nil
			}, newFixture().options()...)
		for _, again := range []bool{false, true} {
			got, err := h(t.Context(), json.RawMessage(doc))
			b, _ := json.Marshal(got)
			if want := !again || known; err != nil || strings.Contains(string(b), "session=b") != want {
				t.Errorf("%s, again: %t: %s, %v", doc, again, b, err)
			}
		}
	}
}

// TestWhatSetsACookie shows which results are responses that set one.
func TestWhatSetsACookie(t *testing.T) { // F61
	t.Parallel()
	for doc, sets := range map[string]bool{
		`{"statusCode":200,"headers":{"set-Cookie":"a=b"}}`:                                 true,
		`{"statusCode":200,"headers":{"X":"a"},"multiValueHeaders":{"Set-Cookie":["a=b"]}}`: true,
		`{"statusCode":200,"headers":{"Set-Cookie":"a=b"},"multiValueHeaders":{"X":["a"]}}`: true,
		`{"statusCode":200,"cookies":["a=b"]}`:                                              true,
		`{"statusCode":200,"cookies":[],"headers":{},"multiValueHeaders":null}`:             false,
		`{"statusCode":200,"headers":7,"cookies":["a=b"]}`:                                  true,
		`{"statusCode":"200","headers":[],"multiValueHeaders":{"SET-COOKIE":"a=b"}}`:        true,
		`{"statusCode":200,"headers":{"Set-Cookie":"a=b"},"headers":{"Content-Type":"t"}}`:  true,
		`{"statusCode":200,"headers":{"X-Set-Cookie":"a=b","Cookie":"a=b"},"body":"a"}`:     false,
		`{"cookies":["a=b"],"headers":{"Set-Cookie":"a=b"}}`:                                false, // the body of a response
		`{"cookies":["oatmeal"]}`: false,
		`{"statusCode":200,"body":"{\"cookies\":[\"a=b\"]}","headers":{"Vary":"Set-Cookie"}}`: false,
	} {
		h := middleware.WithLock(lockAll, func(context.Context, v2Event) (any, error) { return rawDoc(doc), nil }, newFixture().options()...)
		e := v2Event{RawPath: "/"}
		e.RequestContext.APIID, e.RequestContext.HTTP.Method = "api", "POST"
		var last any
		for range 2 {
			var err error
			if last, err = h(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if replayed := strings.Contains(string(toJSON(t, last)), "Idempotent-Replayed"); replayed == sets {
			t.Errorf("%s: replayed %t: %s", doc, replayed, toJSON(t, last))
		}
	}
}

func lockAll(context.Context, v2Event) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }

// rawDoc is a result whose JSON form is this text.
type rawDoc string

func (d rawDoc) MarshalJSON() ([]byte, error) { return []byte(d), nil }
