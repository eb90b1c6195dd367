package keyfuncs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

// itself is the key function of events that are keys.
func itself(_ context.Context, k lock.Key) (lock.Key, error) { return k, nil }

// fixed returns a key function that returns the same for every event.
func fixed(k lock.Key, err error) keyfuncs.Func[lock.Key] {
	return func(context.Context, lock.Key) (lock.Key, error) { return k, err }
}

func named(name string) keyfuncs.Func[lock.Key] { return fixed(lock.Key{Name: name}, nil) }

var errKey = errors.New("no key")

func TestStatic(t *testing.T) {
	t.Parallel()
	if got, err := keyfuncs.Static("job")(t.Context(), 42); got != (lock.Key{Name: "job"}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPrefixIsUnambiguous(t *testing.T) { // F28
	t.Parallel()
	keys := map[string]func() (lock.Key, error){}
	for _, c := range [][2]string{{"a", "b/c"}, {"a/b", "c"}, {"a%2Fb", "c"}, {"", "a/b/c"}, {"a", "/b/c"}, {"a/", "b/c"}} {
		keys[c[0]+" and "+c[1]] = func() (lock.Key, error) {
			return keyfuncs.Prefix(keyfuncs.Static(c[1]), c[0])(t.Context(), nil)
		}
	}
	distinct(t, keys)
	if k, _ := keyfuncs.Prefix(keyfuncs.ByField(func(any) string { return "" }), "p")(t.Context(), nil); k.Name != "" {
		t.Errorf("an empty name became %q", k.Name)
	}
}

func TestHash(t *testing.T) { // F29
	t.Parallel()
	key := lock.Key{Name: "jane@example.com", Event: "e1", Order: "7"}
	secret := []byte("0123456789abcdef")
	hmac := keyfuncs.HMAC(itself, secret)
	secret[0] = 'x' // the caller may reuse its bytes
	seen := map[string]bool{}
	for name, hash := range map[string]keyfuncs.Func[lock.Key]{
		"Hash": keyfuncs.Hash(itself), "HMAC": hmac, "HMAC with another secret": keyfuncs.HMAC(itself, secret),
	} {
		t.Run(name, func(t *testing.T) {
			k, err := hash(t.Context(), key)
			if err != nil || strings.Contains(k.Name, "jane") || len(k.Name) != 43 || len(k.Event) != 43 || k.Order != "7" || seen[k.Name] {
				t.Errorf("%+v, %v", k, err)
			}
			seen[k.Name] = true
			if again, _ := hash(t.Context(), key); again != k {
				t.Errorf("%+v, then %+v", k, again)
			}
			if k, _ := hash(t.Context(), lock.Key{}); k != (lock.Key{}) {
				t.Errorf("nothing became %+v", k)
			}
		})
	}
	// Computed with: printf jane@example.com | openssl dgst -sha256 -hmac
	// 0123456789abcdef -binary | basenc --base64url
	if k, _ := hmac(t.Context(), key); k.Name != "p6VGYcdbzpBnF8pVP9_xueLFeNjHZMjn0j_zm3tQlrE" {
		t.Errorf("HMAC: %s", k.Name)
	}
}

func TestCombinators(t *testing.T) { // F27, F28
	t.Parallel()
	for name, c := range map[string]struct {
		key  keyfuncs.Func[lock.Key]
		want lock.Key
	}{
		"by field":              {keyfuncs.ByField(func(k lock.Key) string { return k.Order }), lock.Key{Name: "o"}},
		"once":                  {keyfuncs.Once(itself), lock.Key{Name: "n", Event: "n"}},
		"event from an event":   {keyfuncs.EventFrom(itself, fixed(lock.Key{Name: "n2", Event: "e2", Order: "o2"}, nil)), lock.Key{Name: "n", Event: "event/n2/e2", Order: "o"}},
		"event from a part":     {keyfuncs.EventFrom(itself, fixed(lock.Key{Name: "a/b", Event: "b"}, nil)), lock.Key{Name: "n", Event: "event/a%2Fb/b", Order: "o"}},
		"event from once":       {keyfuncs.EventFrom(itself, keyfuncs.Once(named("a/b"))), lock.Key{Name: "n", Event: "a/b", Order: "o"}},
		"event from a name":     {keyfuncs.EventFrom(itself, named("n2")), lock.Key{Name: "n", Event: "n2", Order: "o"}},
		"order from an order":   {keyfuncs.OrderFrom(itself, fixed(lock.Key{Name: "n2", Event: "e2", Order: "o2"}, nil)), lock.Key{Name: "join/n/n2", Event: "e", Order: "o2"}},
		"order without a name":  {keyfuncs.OrderFrom(keyfuncs.ByField(func(lock.Key) string { return "" }), itself), lock.Key{Order: "o"}},
		"order from a name":     {keyfuncs.OrderFrom(itself, named("b-7")), lock.Key{Name: "n", Event: "e", Order: "b-7"}},
		"order from a string":   {keyfuncs.OrderFrom(itself, named(`"2026-11-21"`)), lock.Key{Name: "n", Event: "e", Order: "2026-11-21"}},
		"order from its number": {keyfuncs.OrderFrom(itself, named(`"217"`)), lock.Key{Name: "n", Event: "e", Order: "003217"}},
		"order from its time":   {keyfuncs.OrderFrom(itself, named(`"2026-11-21T12:00:30+02:00"`)), lock.Key{Name: "n", Event: "e", Order: "2026-11-21T10:00:30.000000000Z"}},
		"order from its path":   {keyfuncs.OrderFrom(itself, named(`"s3/7"`)), lock.Key{Name: "n", Event: "e", Order: "s3/7"}}, // not the name of a key function
		"order from its escape": {keyfuncs.OrderFrom(itself, named(`"a\"b"`)), lock.Key{Name: "n", Event: "e", Order: `a"b`}},
		"order from a quote":    {keyfuncs.OrderFrom(itself, named(`"a`)), lock.Key{Name: "n", Event: "e", Order: `"a`}},
		"order from a number":   {keyfuncs.OrderFrom(itself, named("0217")), lock.Key{Name: "n", Event: "e", Order: "003217"}},
		"order from many":       {keyfuncs.OrderFrom(itself, named(strings.Repeat("9", 250))), lock.Key{Name: "n", Event: "e", Order: "250" + strings.Repeat("9", 250)}},
		"order from a time":     {keyfuncs.OrderFrom(itself, named("2026-11-21T10:00:30Z")), lock.Key{Name: "n", Event: "e", Order: "2026-11-21T10:00:30.000000000Z"}}, // below 30.5Z, unlike its bytes
		"order from local time": {keyfuncs.OrderFrom(itself, named("2026-11-21T12:00:30.5+02:00")), lock.Key{Name: "n", Event: "e", Order: "2026-11-21T10:00:30.500000000Z"}},
		"order from a date":     {keyfuncs.OrderFrom(itself, named("2026-11-21")), lock.Key{Name: "n", Event: "e", Order: "2026-11-21"}},
		"joined":                {keyfuncs.Join(itself, named("a/b")), lock.Key{Name: "join/n/a%2Fb", Event: "join/e/", Order: "o"}},
		"payload from payload":  {keyfuncs.PayloadFrom(itself, fixed(lock.Key{Name: "n2", Event: "e2", Payload: "p2"}, nil)), lock.Key{Name: "n", Event: "e", Order: "o", Payload: "p2"}},
		"payload from a name":   {keyfuncs.PayloadFrom(itself, named("n2")), lock.Key{Name: "n", Event: "e", Order: "o", Payload: "n2"}},
		"payload kept by Once":  {keyfuncs.Once(keyfuncs.PayloadFrom(itself, named("p"))), lock.Key{Name: "n", Event: "n", Payload: "p"}},
		"payload kept by all":   {keyfuncs.Prefix(keyfuncs.EventFrom(keyfuncs.OrderFrom(keyfuncs.PayloadFrom(itself, named("p")), named("1")), named("x")), "a"), lock.Key{Name: "a/n", Event: "x", Order: "0011", Payload: "p"}},
		"payload joined":        {keyfuncs.Join(keyfuncs.PayloadFrom(named("a"), named("p/q")), named("b")), lock.Key{Name: "join/a/b", Payload: "join/p%2Fq/b"}},
		"payload of both":       {keyfuncs.PayloadFrom(itself, keyfuncs.Join(named("p"), keyfuncs.PayloadFrom(named("b"), named("q")))), lock.Key{Name: "n", Event: "e", Order: "o", Payload: "join/p/q"}},
		"optional, there":       {keyfuncs.Optional(itself), lock.Key{Name: "n", Event: "e", Order: "o"}},
		"joined without events": {keyfuncs.Join(named("a"), fixed(lock.Key{Name: "b", Order: "o"}, nil)), lock.Key{Name: "join/a/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := c.key(t.Context(), lock.Key{Name: "n", Event: "e", Order: "o"}); got != c.want || err != nil {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestCombinatorsRefuse(t *testing.T) {
	t.Parallel()
	bad, none := fixed(lock.Key{}, errKey), keyfuncs.ByField(func(lock.Key) string { return "" })
	for name, c := range map[string]struct {
		key  keyfuncs.Func[lock.Key]
		says string // empty: the error of the key function
	}{
		"Prefix":               {keyfuncs.Prefix(bad, "p"), ""},
		"Once":                 {keyfuncs.Once(bad), ""},
		"Hash":                 {keyfuncs.Hash(bad), ""},
		"EventFrom, key":       {keyfuncs.EventFrom(bad, itself), ""},
		"EventFrom, from":      {keyfuncs.EventFrom(itself, bad), ""},
		"EventFrom nothing":    {keyfuncs.EventFrom(itself, none), "From returned an empty Name, so there is no Event:"},
		"EventFrom an id only": {keyfuncs.EventFrom(itself, fixed(lock.Key{Event: "m1"}, nil)), "From returned an empty Name, so there is no Event:"},
		"PayloadFrom, key":     {keyfuncs.PayloadFrom(bad, itself), ""},
		"PayloadFrom, from":    {keyfuncs.PayloadFrom(itself, bad), ""},
		"PayloadFrom nothing":  {keyfuncs.PayloadFrom(itself, none), "From returned an empty Name, so there is no Payload:"},
		"Optional":             {keyfuncs.Optional(bad), ""},
		"OrderFrom, key":       {keyfuncs.OrderFrom(bad, itself), ""},
		"OrderFrom, from":      {keyfuncs.OrderFrom(itself, bad), ""},
		"OrderFrom nothing":    {keyfuncs.OrderFrom(itself, none), "From returned an empty Name, so there is no Order:"},
		"OrderFrom a fraction": {keyfuncs.OrderFrom(itself, named("1.5")), "key: Order is "},
		"OrderFrom a negative": {keyfuncs.OrderFrom(itself, named("-2")), "key: Order is "},
		"OrderFrom a power":    {keyfuncs.OrderFrom(itself, named("1e400")), "key: Order is "},
		"OrderFrom a string":   {keyfuncs.OrderFrom(itself, named(`"1.10"`)), "key: Order is a number but"},
		"OrderFrom no string":  {keyfuncs.OrderFrom(itself, named(`""`)), "From returned an empty Name, so there is no Order:"},
		"OrderFrom a list":     {keyfuncs.OrderFrom(itself, named("[1,10]")), "key: Order is a JSON array"},
		"OrderFrom an object":  {keyfuncs.OrderFrom(itself, named(`{"major":1}`)), "key: Order is a JSON array"},
		"OrderFrom much":       {keyfuncs.OrderFrom(itself, named(strings.Repeat("9", 251))), "key: Order is "},
		"Join":                 {keyfuncs.Join(itself, bad), ""},
		"Join nothing":         {keyfuncs.Join(itself, none), "part 2 of Join returned an empty Name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.key(t.Context(), lock.Key{Name: "n"})
			_, ok := err.(*lock.NoKeyError)
			if c.says == "" && err != errKey || c.says != "" && (!ok || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want an error that says %q", err, c.says)
			}
		})
	}
}

// TestOptional shows which errors of a key function let the handler run without
// a lock: none but the absence of what the client may leave out.
func TestOptional(t *testing.T) {
	t.Parallel()
	absent := &lock.NoKeyError{Field: "f", Reason: "is missing", Client: true, Missing: true}
	for name, c := range map[string]struct {
		k      lock.Key
		err    error
		noLock bool
	}{
		"absent":                    {lock.Key{}, absent, true},
		"absent, wrapped":           {lock.Key{}, fmt.Errorf("tenant 7: %w", absent), true},
		"no name":                   {lock.Key{Event: "e"}, nil, true},
		"no lock anyway":            {lock.Key{}, keyfuncs.ErrNoLock, true},
		"malformed":                 {lock.Key{}, &lock.NoKeyError{Field: "f", Client: true}, false},
		"absent, the operator's":    {lock.Key{}, &lock.NoKeyError{Field: "f", Missing: true}, false},
		"other error":               {lock.Key{}, errors.New("boom"), false},
		"nothing to work on":        {lock.Key{}, keyfuncs.ErrIgnore, false},
		"a nil NoKeyError as error": {lock.Key{}, (*lock.NoKeyError)(nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, err := keyfuncs.Optional(fixed(c.k, c.err))(t.Context(), lock.Key{})
			want := c.err
			if c.noLock {
				want = keyfuncs.ErrNoLock
			}
			if err != want || k != (lock.Key{}) {
				t.Errorf("%+v, %v; want %v", k, err, want)
			}
		})
	}
}

// TestOptionalOfRequests shows that requests without a key need no lock, and
// that a malformed key and an event of another source stay errors.
func TestOptionalOfRequests(t *testing.T) {
	t.Parallel()
	type request = events.APIGatewayV2HTTPRequest
	header := keyfuncs.Optional(keyfuncs.IdempotencyKey[request])
	body := keyfuncs.Optional(keyfuncs.HTTPBody[request](keyfuncs.ByField(func(b struct{ Order string }) string { return b.Order })))
	path := keyfuncs.Optional(keyfuncs.HTTPBody[request](jmespath.Path("order")))
	for name, c := range map[string]struct {
		key    keyfuncs.Func[request]
		change func(*request)
		noLock bool
	}{
		"no header":         {header, func(r *request) { delete(r.Headers, "idempotency-key") }, true},
		"empty header":      {header, func(r *request) { r.Headers["idempotency-key"] = "" }, false},
		"long header":       {header, func(r *request) { r.Headers["idempotency-key"] = strings.Repeat("x", 256) }, false},
		"no header, no API": {header, func(r *request) { delete(r.Headers, "idempotency-key"); r.RequestContext.APIID = "" }, false},
		"no header, no sub": {header, func(r *request) {
			delete(r.Headers, "idempotency-key")
			delete(r.RequestContext.Authorizer.JWT.Claims, "sub")
		}, true},
		"another source":       {header, func(r *request) { *r = request{} }, false},
		"no body":              {body, func(r *request) { r.Body = "" }, true},
		"no member":            {body, func(r *request) { r.Body = "{}" }, true},
		"no JSON":              {body, func(r *request) { r.Body = "x" }, false},
		"no body, no API":      {body, func(r *request) { *r = request{} }, false},
		"path, no body":        {path, func(r *request) { r.Body = "" }, true},
		"path, no member":      {path, func(r *request) { r.Body = "{}" }, true},
		"path, null":           {path, func(r *request) { r.Body = `{"order":null}` }, true},
		"path, empty member":   {path, func(r *request) { r.Body = `{"order":""}` }, false},
		"path, null in a part": {path, func(r *request) { r.Body = `{"order":[null]}` }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, err := changed(t, "apigateway-http.json", c.key, c.change)
			if err == nil || errors.Is(err, keyfuncs.ErrNoLock) != c.noLock {
				t.Errorf("%+v, %v; want ErrNoLock: %v", k, err, c.noLock)
			}
		})
	}
}

func TestConstructorsPanicAtOnce(t *testing.T) {
	t.Parallel()
	for want, construct := range map[string]func(){
		"keyfuncs.HMAC: a secret of 5 bytes": func() { keyfuncs.HMAC(itself, []byte("short")) },
		"keyfuncs.ByField(nil): ":            func() { keyfuncs.ByField[lock.Key](nil) },
		"services.StepFunctions(nil): ":      func() { services.StepFunctions[taskInput](nil) },
		"services.IoTRule(nil): ":            func() { services.IoTRule[reading](nil) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "lambdalock: "+want) || strings.Contains(s, "\n") {
					t.Errorf("panicked with %q", s)
				}
			}()
			construct()
		})
	}
}

// FuzzCompose checks that the combinators keep different keys apart, and
// numbers in their order.
func FuzzCompose(f *testing.F) { // F28
	f.Add("a/b", "c", "", "a", "b/c", "")
	f.Add("7", "e", "x", "17", "e", "x")
	f.Add("a%2Fb", "", "", "a/b", "", "")
	combined := []keyfuncs.Func[lock.Key]{
		keyfuncs.Prefix(itself, "p"), keyfuncs.Join(itself, keyfuncs.Once(itself)), keyfuncs.Hash(itself), keyfuncs.HMAC(itself, []byte("0123456789abcdef")),
	}
	f.Fuzz(func(t *testing.T, name, event, order, name2, event2, order2 string) {
		a, b := lock.Key{Name: name, Event: event, Order: order}, lock.Key{Name: name2, Event: event2, Order: order2}
		for i, key := range combined {
			ka, errA := key(t.Context(), a)
			kb, errB := key(t.Context(), b)
			if errA == nil && errB == nil && (ka.Name == kb.Name) != (name == name2) {
				t.Errorf("%d: %+v and %+v become %+v and %+v", i, a, b, ka, kb)
			}
		}
		pair := func(x, y string) string {
			k, _ := keyfuncs.Join(named(x+"."), named(y+"."))(t.Context(), a)
			return k.Name
		}
		if (pair(name, event) == pair(name2, event2)) != (name == name2 && event == event2) {
			t.Errorf("%q and %q join to the same as %q and %q", name, event, name2, event2)
		}
		na, nb := json.Number(name), json.Number(name2)
		ia, errA := na.Int64()
		ib, errB := nb.Int64()
		if errA != nil || errB != nil || strings.ContainsAny(name[:1]+name2[:1], "+-") {
			return
		}
		byNumber := keyfuncs.OrderFrom(itself, keyfuncs.Once(itself))
		oa, errA := byNumber(t.Context(), lock.Key{Name: name})
		ob, errB := byNumber(t.Context(), lock.Key{Name: name2})
		if errA != nil || errB != nil || (ia < ib) != (oa.Order < ob.Order) || (ia == ib) != (oa.Order == ob.Order) {
			t.Errorf("%s and %s order as %q and %q, %v, %v", name, name2, oa.Order, ob.Order, errA, errB)
		}
	})
}

// TestEventFromKeepsThePayload shows that an event that comes again with
// another payload is recognised whichever of the two keys has the fingerprint.
func TestEventFromKeepsThePayload(t *testing.T) {
	t.Parallel()
	plain := func(context.Context, string) (lock.Key, error) { return lock.Key{Name: "n"}, nil }
	printed := func(_ context.Context, e string) (lock.Key, error) {
		return lock.Key{Name: "m", Event: "e", Payload: "of " + e}, nil
	}
	for name, c := range map[string]struct {
		key  keyfuncs.Func[string]
		want lock.Key
	}{
		"of the event": {keyfuncs.EventFrom(plain, printed), lock.Key{Name: "n", Event: "event/m/e", Payload: "of a"}},
		"of the name":  {keyfuncs.EventFrom(printed, plain), lock.Key{Name: "m", Event: "n", Payload: "of a"}},
		"of neither":   {keyfuncs.EventFrom(plain, plain), lock.Key{Name: "n", Event: "n"}},
		"of both":      {keyfuncs.EventFrom(keyfuncs.PayloadFrom(plain, plain), printed), lock.Key{Name: "n", Event: "event/m/e", Payload: "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := c.key(t.Context(), "a"); got != c.want || err != nil {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}
