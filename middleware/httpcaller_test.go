package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// sentWith makes a request one that no gateway authenticated, with this
// Authorization header; empty: none.
func sentWith(authorization string) func(map[string]any) {
	return func(e map[string]any) {
		delete(e["requestContext"].(map[string]any), "authorizer")
		if headers, ok := e["headers"].(map[string]any); ok {
			delete(headers, "x-amzn-oidc-identity")
			if authorization != "" {
				headers["authorization"] = authorization
			}
		}
		if headers, ok := e["multiValueHeaders"].(map[string]any); ok && authorization != "" {
			headers["Authorization"] = []string{authorization}
		}
	}
}

// TestStrangerGetsNoStoredAnswer shows that the answer to a request is not
// replayed to somebody else who has its key, where the handler itself checks
// who asks: neither while the request is in progress nor afterwards.
func TestStrangerGetsNoStoredAnswer(t *testing.T) { // F28, F37, F61
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		for _, key := range []keyOption{required, own} {
			strangersAreRefused(t, r, key, edited(t, doc, sentWith("Bearer alice")),
				edited(t, doc, sentWith("Bearer mallory")), edited(t, doc, sentWith("")))
			strangersAreRefused(t, r, key, edited(t, doc, sentWith("")), edited(t, doc, sentWith("Bearer mallory")))
		}
	})
}

// strangersAreRefused checks that strangers get neither the work nor the answer
// of the request of alice.
func strangersAreRefused(t *testing.T, r route, key keyOption, alice []byte, strangers ...[]byte) {
	t.Helper()
	f, runs := newFixture(), 0
	var call func([]byte) (reply, error)
	refused := func() {
		for _, s := range strangers {
			got, err := call(s)
			wantProblem(t, got, err, http.StatusUnprocessableEntity, "another caller")
		}
	}
	call = r(t, f, key, func() (reply, error) {
		runs++
		refused()
		return created, nil
	})
	for _, mark := range []string{"", "true"} {
		if got, err := call(alice); err != nil || got.status != created.status || got.mark() != mark {
			t.Errorf("%+v, %v; want mark %q", got, err, mark)
		}
		refused()
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// authenticatedAs makes a request one whose sender the gateway authenticated.
func authenticatedAs(who string) func(map[string]any) {
	return func(e map[string]any) {
		sentWith("")(e)
		c := e["requestContext"].(map[string]any)
		domain, _ := c["domainName"].(string)
		switch {
		case c["elb"] != nil && e["headers"] != nil:
			e["headers"].(map[string]any)["x-amzn-oidc-identity"] = who
		case c["elb"] != nil:
			e["multiValueHeaders"].(map[string]any)["x-amzn-oidc-identity"] = []string{who}
		case strings.Contains(domain, ".lambda-url."):
			c["authorizer"] = map[string]any{"iam": map[string]any{"callerId": who}}
		case c["http"] != nil:
			c["authorizer"] = map[string]any{"jwt": map[string]any{"claims": map[string]string{"iss": "i", "sub": who}}}
		default:
			c["authorizer"] = map[string]any{"claims": map[string]any{"iss": "i", "sub": who}}
		}
	}
}

// TestAuthenticatedStrangerWithOwnKey shows that a key function of the user's
// needs to say nothing of callers: the answer is replayed to the caller whom
// the gateway authenticated, whatever his session, and to nobody else.
func TestAuthenticatedStrangerWithOwnKey(t *testing.T) { // F28, F61
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		if strings.Contains(t.Name(), "own_event_without_a_context") {
			t.Skip("the handler does not see either whom the gateway authenticated")
		}
		alice := edited(t, doc, authenticatedAs("alice"))
		strangersAreRefused(t, r, own, alice, edited(t, doc, authenticatedAs("mallory")), edited(t, doc, sentWith("")))
		f := newFixture()
		call := r(t, f, own, func() (reply, error) { return created, nil })
		for _, e := range [][]byte{alice, edited(t, alice, func(e map[string]any) {
			if headers, ok := e["headers"].(map[string]any); ok {
				headers["authorization"] = "Bearer fresh"
			}
		})} {
			if got, err := call(e); err != nil || got.status != created.status {
				t.Errorf("%+v, %v", got, err)
			}
		}
		if n := f.count(lock.OutcomeAlreadyCompleted); n != 1 {
			t.Errorf("%d of 1 duplicates recognised", n)
		}
	})
}

// TestRefusedTokenIsNotStored shows that a client whose token had expired gets
// its work done with a fresh one, and that a stranger cannot store a refusal
// under its key.
func TestRefusedTokenIsNotStored(t *testing.T) {
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f, token := newFixture(), ""
		call := r(t, f, required, func() (reply, error) {
			if token != "fresh" {
				return reply{status: http.StatusUnauthorized}, nil
			}
			return created, nil
		})
		for _, c := range []struct {
			token  string
			status int
		}{{"stranger", 401}, {"expired", 401}, {"fresh", created.status}, {"fresh", created.status}, {"stranger", 422}} {
			token = c.token
			if got, err := call(edited(t, doc, sentWith("Bearer "+c.token))); err != nil || got.status != c.status {
				t.Errorf("%s: %+v, %v; want status %d", c.token, got, err, c.status)
			}
		}
	})
}

// TestStrangerWithoutGateway shows that a stranger gets no stored answer where
// only the result shows that it is a response, and that nothing changes for a
// payload that names nobody.
func TestStrangerWithoutGateway(t *testing.T) { // F28
	t.Parallel()
	alice := map[string]any{"headers": map[string]string{"Authorization": "Bearer alice"}}
	for name, c := range map[string]struct {
		first, second map[string]any
		refused       bool
	}{
		"the same":              {alice, alice, false},
		"another token":         {alice, map[string]any{"headers": map[string]string{"authorization": "Bearer mallory"}}, true},
		"no token":              {alice, map[string]any{"headers": map[string]string{}}, true},
		"a token afterwards":    {map[string]any{"headers": nil}, alice, true},
		"another cookie":        {map[string]any{"cookies": []string{"s=a"}}, map[string]any{"cookies": []string{"s=b"}}, true},
		"of a load balancer":    {map[string]any{"multiValueHeaders": map[string][]string{"cookie": {"s=a"}}}, map[string]any{"multiValueHeaders": map[string][]string{"cookie": {"s=b"}}}, true},
		"another claim":         {authorized("claims", "a"), authorized("claims", "b"), true},
		"another user":          {authorized("lambda", "a"), authorized("lambda", "b"), true},
		"no request":            {map[string]any{"id": 1}, map[string]any{"id": 1, "body": "other"}, false},
		"no field of a request": {map[string]any{"Authorization": "a"}, map[string]any{"Authorization": "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			key := func(context.Context, map[string]any) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
			h := middleware.WithLock(key, func(context.Context, map[string]any) (map[string]any, error) {
				return map[string]any{"statusCode": 201}, nil
			}, f.options()...)
			expect.Value(h(t.Context(), c.first))(t)
			_, err := h(t.Context(), c.second)
			if errors.As(err, new(*lock.PayloadMismatchError)) != c.refused || err != nil != c.refused {
				t.Errorf("%v; want refused: %t", err, c.refused)
			}
		})
	}
}

// TestStrangerWithNothingOfARequest shows that a caller who is known by what a
// request has, and one whose event has nothing of it, get no answer of the
// other.
func TestStrangerWithNothingOfARequest(t *testing.T) { // F28
	t.Parallel()
	alice := map[string]any{"id": 1, "headers": map[string]string{"Authorization": "Bearer alice"}}
	nobody := map[string]any{"id": 1}
	for name, events := range map[string][2]map[string]any{"afterwards": {alice, nobody}, "before": {nobody, alice}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := middleware.WithLock(staticEvent[map[string]any], func(context.Context, map[string]any) (map[string]any, error) {
				return map[string]any{"statusCode": 201, "body": "receipt"}, nil
			}, newFixture().options()...)
			if got, err := h(t.Context(), events[0]); err != nil || got["body"] != "receipt" {
				t.Fatalf("%v, %v", got, err)
			}
			if got, err := h(t.Context(), events[1]); err != nil || got["body"] != nil {
				t.Errorf("%v, %v; want the zero result", got, err)
			}
			if got, err := h(t.Context(), events[0]); err != nil || got["body"] != "receipt" {
				t.Errorf("again: %v, %v", got, err)
			}
		})
	}
}

func authorized(by, who string) map[string]any {
	return map[string]any{"requestContext": map[string]any{"authorizer": map[string]any{by: map[string]any{"sub": who}}}}
}

// TestStrangerOfSeveralKeys shows that the caller counts for every key of a
// request that needs several locks, but for one that has a Payload of its own
// or no Event.
func TestStrangerOfSeveralKeys(t *testing.T) { // F28
	t.Parallel()
	for name, c := range map[string]struct {
		keys    []lock.Key
		refused bool
	}{
		"first":       {[]lock.Key{{Name: "a", Event: "e"}, {Name: "b"}}, true},
		"second":      {[]lock.Key{{Name: "a"}, {Name: "b", Event: "e"}}, true},
		"own payload": {[]lock.Key{{Name: "a"}, {Name: "b", Event: "e", Payload: "p"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := func(context.Context, v2Event) ([]lock.Key, error) { return c.keys, nil }
			h := middleware.WithLocks(keys, func(context.Context, v2Event) (ownResponse, error) {
				return ownResponse{Code: http.StatusCreated}, nil
			}, newFixture().options()...)
			if got, err := h(t.Context(), v2Event{Headers: map[string]string{"authorization": "alice"}}); err != nil || got.Code != 201 {
				t.Fatalf("%+v, %v", got, err)
			}
			got, err := h(t.Context(), v2Event{Headers: map[string]string{"authorization": "mallory"}})
			if err != nil || (got.Code == http.StatusUnprocessableEntity) != c.refused {
				t.Errorf("%+v, %v; want refused: %t", got, err, c.refused)
			}
		})
	}
}

// TestStrangerOfAnOwnType shows that the caller counts in any field that one of
// the gateways has, where a type of the user's does not show which one it is.
func TestStrangerOfAnOwnType(t *testing.T) { // F28
	t.Parallel()
	type request struct {
		MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	}
	key := func(context.Context, request) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
	h := middleware.WithLock(key, func(context.Context, request) (ownResponse, error) {
		return ownResponse{Code: http.StatusCreated}, nil
	}, newFixture().options()...)
	alice, mallory := map[string][]string{"cookie": {"s=a"}}, map[string][]string{"cookie": {"s=m"}}
	for i, headers := range []map[string][]string{alice, mallory, nil} {
		want := []int{http.StatusCreated, http.StatusUnprocessableEntity, http.StatusUnprocessableEntity}[i]
		if got, err := h(t.Context(), request{headers}); err != nil || got.Code != want {
			t.Errorf("%v: %+v, %v; want status %d", headers, got, err, want)
		}
	}
}

// TestStrangerByALongNumber shows that callers whom a Lambda authorizer tells
// apart by a number that Go rounds are told apart where its digits are at hand,
// and are refused elsewhere. A number that Go does not round counts by its
// value everywhere, so that a handler may come to take another type.
func TestStrangerByALongNumber(t *testing.T) { // F61
	t.Parallel()
	sentBy := func(id string) []byte {
		return []byte(`{"version":"2.0","rawPath":"/","requestContext":{"apiId":"a","http":{"method":"POST"},"authorizer":{"lambda":{"id":` + id + `,"email":"e"}}}}`)
	}
	payloads := map[string]bool{}
	for name, c := range map[string]struct {
		wrap    func([]middleware.Option) any
		options []lambda.Option
		told    bool
	}{
		"bytes": {func(opts []middleware.Option) any {
			return middleware.WithLock(staticEvent[v2Event], lambda.Handler(rawFunc(func([]byte) ([]byte, error) { return []byte(`{"statusCode":201}`), nil })), opts...)
		}, nil, true},
		"json.RawMessage":     {createdFor[json.RawMessage], nil, true},
		"type":                {createdFor[v2Event], nil, false},
		"type, WithUseNumber": {createdFor[v2Event], []lambda.Option{lambda.WithUseNumber(true)}, true},
		"any":                 {createdFor[any], nil, false},
	} {
		f := newFixture()
		h := lambda.NewHandlerWithOptions(c.wrap(f.options()), c.options...)
		for _, call := range []struct{ id, status string }{
			{"9007199254740993", `"statusCode":201`}, {"9007199254740993", `"statusCode":201`}, {"9007199254740992", `"statusCode":422`},
		} {
			switch out, err := h.Invoke(t.Context(), sentBy(call.id)); {
			case c.told && (err != nil || !strings.Contains(string(out), call.status)):
				t.Errorf("%s: %s: %s, %v; want %s", name, call.id, out, err, call.status)
			case !c.told && !errors.As(err, new(*lock.NoKeyError)):
				t.Errorf("%s: %s: %s, %v; want a NoKeyError", name, call.id, out, err)
			}
		}
		f = newFixture()
		expect.Value(lambda.NewHandlerWithOptions(c.wrap(f.options())).Invoke(t.Context(), sentBy("1.50")))(t)
		payloads[f.of(lock.OutcomeAcquired)[0].Key.Payload] = true
	}
	if len(payloads) != 1 {
		t.Errorf("a short number counts in %d ways", len(payloads))
	}
}

func createdFor[E any](opts []middleware.Option) any {
	return middleware.WithLock(staticEvent[v2Event], func(E) (any, error) { return ownResponse{Code: http.StatusCreated}, nil }, opts...)
}

// redactedEvent is a request whose JSON form is made for logs.
type redactedEvent struct{ restEvent }

func (redactedEvent) MarshalJSON() ([]byte, error) { return []byte(`{"path":"/orders"}`), nil }

// TestStrangerOfARedactedRequest shows that the caller is read from the request
// that a type of the user's embeds, whatever its JSON form leaves out.
func TestStrangerOfARedactedRequest(t *testing.T) { // F28
	t.Parallel()
	h := middleware.WithLock(staticEvent[redactedEvent], func(context.Context, redactedEvent) (ownResponse, error) {
		return ownResponse{Code: http.StatusCreated}, nil
	}, newFixture().options()...)
	for i, who := range []string{"alice", "mallory"} {
		got, err := h(t.Context(), redactedEvent{restEvent{Headers: map[string]string{"authorization": who}}})
		if want := []int{http.StatusCreated, http.StatusUnprocessableEntity}[i]; err != nil || got.Code != want {
			t.Errorf("%s: %+v, %v; want status %d", who, got, err, want)
		}
	}
}

// TestHeadersOfNoRequest shows that headers are compared only where the result
// may be a response: those of a message may differ each time it comes.
func TestHeadersOfNoRequest(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(staticEvent[map[string]any], func(context.Context, map[string]any) (order, error) { return order{}, nil }, f.options()...)
	for _, authorization := range []string{"first", "second"} {
		if _, err := h(t.Context(), map[string]any{"headers": map[string]string{"authorization": authorization}}); err != nil {
			t.Errorf("%s: %v", authorization, err)
		}
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
}

// TestNobodyWithoutRequest shows that an event with nothing of a request names
// no caller, which would take room in the row from the events it remembers.
func TestNobodyWithoutRequest(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(staticEvent[map[string]any], func(context.Context, map[string]any) (any, error) { return "done", nil }, f.options()...)
	expect.Value(h(t.Context(), map[string]any{"id": 1}))(t)
	if k := f.of(lock.OutcomeAcquired)[0].Key; k.Payload != "" {
		t.Errorf("locked %+v", k)
	}
}

// TestAnswerForNobody shows that, where no gateway shows, the answer to a
// caller known by a member that others lack is not for those, nor theirs for
// that caller.
func TestAnswerForNobody(t *testing.T) { // F28, F61
	t.Parallel()
	type byCookies struct {
		Cookies []string `json:"cookies,omitempty"`
	}
	answersOne(t, byCookies{[]string{"s=alice"}})
	type byHeaders struct {
		Headers map[string]string `json:"headers,omitempty"`
	}
	answersOne(t, byHeaders{map[string]string{"cookie": "s=alice"}})
	type byLists struct {
		MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	}
	answersOne(t, byLists{map[string][]string{"cookie": {"s=alice"}}})
	type byContext struct {
		RequestContext map[string]any `json:"requestContext,omitempty"`
		Headers        int            `json:"headers,omitempty"` // of the user's own
	}
	answersOne(t, byContext{RequestContext: map[string]any{"authorizer": map[string]any{"principalId": "alice"}}})
}

func answersOne[E any](t *testing.T, alice E) {
	t.Helper()
	var nobody E
	for name, deliver := range map[string][2]E{"first alice": {alice, nobody}, "first nobody": {nobody, alice}} {
		h := middleware.WithLock(staticEvent[E], func(context.Context, E) (any, error) {
			return map[string]any{"statusCode": 201}, nil
		}, newFixture().options(middleware.OnCompleted(middleware.Replay))...)
		expect.Value(h(t.Context(), deliver[0]))(t)
		got, err := h(t.Context(), deliver[1])
		if !errors.As(err, new(*lock.PayloadMismatchError)) {
			t.Errorf("%T, %s: the other got %v, %v; want the payload refused", alice, name, got, err)
		}
		expect.Value(h(t.Context(), deliver[0]))(t)
	}
}

func staticEvent[E any](context.Context, E) (lock.Key, error) {
	return lock.Key{Name: "n", Event: "e"}, nil
}

// TestUnreadableCaller shows that a request whose callers cannot be told apart
// is refused with what to change.
func TestUnreadableCaller(t *testing.T) { // F28
	t.Parallel()
	type odd struct {
		Headers []string `json:"headers"`
	}
	for name, k := range map[string]lock.Key{"event": {Name: "n", Event: "e"}, "payload": {Name: "n", Event: "e", Payload: "p"}, "mutex": {Name: "n"}} {
		h := middleware.WithLock(func(context.Context, odd) (lock.Key, error) { return k, nil }, func(context.Context, odd) (ownResponse, error) {
			return ownResponse{Code: http.StatusCreated}, nil
		}, newFixture().options()...)
		_, err := h(t.Context(), odd{[]string{"authorization: a"}})
		if refused := name == "event"; errors.As(err, new(*lock.NoKeyError)) != refused || refused && !strings.Contains(err.Error(), "keyfuncs.PayloadFrom(key, caller)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMembersLikeThoseOfARequest shows that an event that no gateway sent may
// have members with the names of those in which a caller is. What they hold
// does not name one, so only the key counts, and a result that is not a
// response may be replayed.
func TestMembersLikeThoseOfARequest(t *testing.T) { // F28
	t.Parallel()
	for _, doc := range []string{
		`{"headers":["name","price"]}`, `{"headers":"name,price"}`, `{"headers":2}`, `{"headers":{"name":1}}`, `{"headers":{"a":"b","name":1}}`,
		`{"headers":[{"key":"name","value":"Name"}]}`, `{"headers":{"name":[1]}}`, `{"headers":{"name":{"type":"text"}}}`, `{"headers":{"name":null,"n":1}}`,
		`{"multiValueHeaders":["name"]}`, `{"multiValueHeaders":{"name":"n"}}`, `{"cookies":7}`, `{"cookies":{"oatmeal":12}}`, `{"cookies":[{"type":"oatmeal"}]}`,
		`{"requestContext":"batch"}`, `{"requestContext":["batch"]}`, `{"requestContext":{"apiId":7}}`, `{"requestContext":{"authorizer":"jane"}}`,
		`{"headers":{"name":"n"},"cookies":{"oatmeal":12}}`, `{"headers":{"name":"n","price":null},"requestContext":"batch"}`, `{"headers":{"name":null},"cookies":7}`,
	} {
		for name, h := range ofAnyShape(t.Context(), newFixture().options(middleware.OnCompleted(middleware.Replay)), `7`) {
			for range 2 {
				if got, err := h([]byte(doc)); err != nil || got != "7" {
					t.Errorf("%s: %s: %s, %v", doc, name, got, err)
				}
			}
		}
	}
}

// TestUnreadableStranger shows that a stranger gets no stored answer if the
// event does not look like that of a gateway, what could name the caller cannot
// be read, and only the result shows that a client waits: the first one is
// answered, and the others get no answer of anybody's.
func TestUnreadableStranger(t *testing.T) { // F28
	t.Parallel()
	for _, docs := range [][2]string{
		{`{"headers":[["authorization","alice"]]}`, `{"headers":[["authorization","mallory"]]}`},
		{`{"headers":[{"name":"cookie","value":"s=a"}]}`, `{"headers":[{"name":"cookie","value":"s=b"}]}`},
		{`{"headers":{"authorization":"alice","age":1}}`, `{"headers":{"age":1}}`},
		{`{"headers":{"authorization":{"value":"alice"}}}`, `{"headers":{"authorization":{"value":"mallory"}}}`},
		{`{"multiValueHeaders":{"cookie":"s=a"}}`, `{"multiValueHeaders":{"cookie":"s=b"}}`},
		{`{"cookies":{"s":"a"}}`, `{"cookies":{"s":"b"}}`},
		{`{"headers":{"accept":"text/html"},"cookies":{"s":"a"}}`, `{"headers":{"accept":"text/html"},"cookies":{"s":"b"}}`},
		{`{"requestContext":{"timeEpoch":"1","identity":{"principal":"alice"}}}`, `{"requestContext":{"timeEpoch":"1","identity":{"principal":"mallory"}}}`},
	} {
		f := newFixture()
		for name, h := range ofAnyShape(t.Context(), f.options(), `{"statusCode":201,"body":"for alice"}`) {
			f.forget()
			if got, err := h([]byte(docs[0])); err != nil || !strings.Contains(got, "for alice") {
				t.Errorf("%s: %s: %s, %v", docs[0], name, got, err)
			}
			for _, doc := range docs {
				if got, err := h([]byte(doc)); strings.Contains(got, "for alice") {
					t.Errorf("%s: %s: %s, %v", doc, name, got, err)
				}
			}
			dropped := f.of(lock.OutcomeResultDropped)
			if len(dropped) != 1 || !strings.Contains(dropped[0].Err.Error(), "keyfuncs.PayloadFrom(key, caller)") {
				t.Errorf("%s: %s: %v", docs[0], name, dropped)
			}
		}
	}
	for _, doc := range []string{
		`{"headers":{"authorization":["alice"]}}`, `{"headers":{"authorization":["alice"],"age":"1","accept":[]}}`, // as VPC Lattice sends them
		`{"headers":["alice"],"requestContext":{"apiId":"a","http":{"method":"POST"}}}`,
		`{"headers":{"authorization":"\ufffd"}}`, `{"headers":{"authorization":"\ufffd","age":1}}`, // as which Go decodes broken characters
	} {
		for _, result := range []string{`7`, `{"statusCode":201}`} {
			for name, h := range ofAnyShape(t.Context(), newFixture().options(), result) {
				if _, err := h([]byte(doc)); !errors.As(err, new(*lock.NoKeyError)) {
					t.Errorf("%s: %s: %v", doc, name, err)
				}
			}
		}
	}
}

// ofAnyShape returns handlers of which neither the types nor most payloads show
// who waits for the result.
func ofAnyShape(ctx context.Context, opts []middleware.Option, result string) map[string]func(doc []byte) (string, error) {
	type members struct {
		Headers           any `json:"headers,omitempty"`
		MultiValueHeaders any `json:"multiValueHeaders,omitempty"`
		Cookies           any `json:"cookies,omitempty"`
		RequestContext    any `json:"requestContext,omitempty"`
	}
	raw := middleware.WithLock(func(context.Context, json.RawMessage) (lock.Key, error) {
		return lock.Key{Name: "raw", Event: "e"}, nil
	}, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { return []byte(result), nil })), opts...)
	return map[string]func([]byte) (string, error){
		"own": withAny[members](ctx, "own", result, opts), "pointer": withAny[*members](ctx, "pointer", result, opts),
		"map": withAny[map[string]any](ctx, "map", result, opts), "any": withAny[any](ctx, "any", result, opts),
		"Handler": func(doc []byte) (string, error) {
			out, err := raw.Invoke(ctx, doc)
			return string(out), err
		},
	}
}

func withAny[E any](ctx context.Context, name, result string, opts []middleware.Option) func([]byte) (string, error) {
	h := middleware.WithLock(func(context.Context, E) (lock.Key, error) { return lock.Key{Name: name, Event: "e"}, nil }, func(context.Context, E) (any, error) {
		return json.RawMessage(result), nil
	}, opts...)
	return func(doc []byte) (string, error) {
		var e E
		if err := json.Unmarshal(doc, &e); err != nil {
			return "", err
		}
		out, err := h(ctx, e)
		b, _ := json.Marshal(out)
		return string(b), err
	}
}

// TestAnonymousOwnKey shows that a key function of the user's may say that
// credentials do not matter.
func TestAnonymousOwnKey(t *testing.T) {
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f := newFixture()
		call := r(t, f, anonymous, func() (reply, error) { return created, nil })
		for _, e := range [][]byte{edited(t, doc, sentWith("Bearer a")), edited(t, doc, sentWith("")), edited(t, doc, authenticatedAs("b"))} {
			if got, err := call(e); err != nil || got.status != created.status {
				t.Errorf("%+v, %v", got, err)
			}
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted, lock.OutcomeAlreadyCompleted)
	})
}

// TestAnonymousAnswer shows that an API may say that credentials do not matter.
func TestAnonymousAnswer(t *testing.T) {
	t.Parallel()
	f, runs := newFixture(), 0
	h := middleware.WithLock(keyfuncs.HeaderKey("X-Request-Id", keyfuncs.Anonymous[v2Event]), func(context.Context, v2Event) (ownResponse, error) {
		runs++
		return ownResponse{Code: http.StatusCreated}, nil
	}, f.options()...)
	for _, token := range []string{"a", "b", ""} {
		e := v2Event{RawPath: "/", Headers: map[string]string{"x-request-id": "r", "authorization": token}}
		e.RequestContext.APIID, e.RequestContext.HTTP.Method = "api", "POST"
		if got, err := h(t.Context(), e); err != nil || got.Code != http.StatusCreated {
			t.Errorf("%+v, %v", got, err)
		}
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted, lock.OutcomeAlreadyCompleted)
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// TestStrangerSendsAMessage shows that the answer to a message of a WebSocket
// API is not sent through another connection.
func TestStrangerSendsAMessage(t *testing.T) { // F28, F61
	t.Parallel()
	doc := expect.Value(os.ReadFile("../keyfuncs/testdata/apigateway-websocket-message.json"))(t)
	through := func(connection string) []byte {
		return edited(t, doc, func(e map[string]any) {
			sentWith("")(e)
			e["requestContext"].(map[string]any)["connectionId"] = connection
		})
	}
	for way, r := range routes["apigateway-websocket-connect"] {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			strangersAreRefused(t, r, own, through("alice"), through("mallory"))
		})
	}
}
