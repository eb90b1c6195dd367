package keyfuncs_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// itself is the key function of events that are keys.
func itself(_ context.Context, k lock.Key) (lock.Key, error) { return k, nil }

// fixed is a key function that gives what it was given.
func fixed(k lock.Key, err error) keyfuncs.Func[lock.Key] {
	return func(context.Context, lock.Key) (lock.Key, error) { return k, err }
}

var errKey = errors.New("no key")

func TestPrefixIsUnambiguous(t *testing.T) { // F28
	t.Parallel()
	seen := map[string]string{}
	for _, c := range [][2]string{{"a", "b/c"}, {"a/b", "c"}, {"a%2Fb", "c"}, {"", "a/b/c"}, {"a", "/b/c"}, {"a/", "b/c"}} {
		k, err := keyfuncs.Prefix(c[0], keyfuncs.Static(c[1]))(t.Context(), nil)
		if other, ok := seen[k.Name]; ok || err != nil {
			t.Errorf("%q and %s both give %q, %v", c, other, k.Name, err)
		}
		seen[k.Name] = strings.Join(c[:], " ")
	}
	if k, _ := keyfuncs.Prefix("p", keyfuncs.Static(""))(t.Context(), nil); k.Name != "" {
		t.Errorf("an empty name became %q", k.Name)
	}
}

func TestHash(t *testing.T) { // F29
	t.Parallel()
	key := lock.Key{Name: "jane@example.com", Event: "e1", Order: "7"}
	secret := []byte("0123456789abcdef")
	hmac := keyfuncs.HMAC(secret, itself)
	secret[0] = 'x' // the caller may reuse its bytes
	seen := map[string]bool{}
	for name, hash := range map[string]keyfuncs.Func[lock.Key]{
		"Hash": keyfuncs.Hash(itself), "HMAC": hmac, "HMAC with another secret": keyfuncs.HMAC(secret, itself),
	} {
		k, err := hash(t.Context(), key)
		if err != nil || strings.Contains(k.Name, "jane") || len(k.Name) != 43 || len(k.Event) != 43 || k.Order != "7" || seen[k.Name] {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
		seen[k.Name] = true
		if again, _ := hash(t.Context(), key); again != k {
			t.Errorf("%s is not deterministic", name)
		}
		if k, _ := hash(t.Context(), lock.Key{}); k != (lock.Key{}) {
			t.Errorf("%s: nothing became %+v", name, k)
		}
	}
	// Computed with: printf jane@example.com | openssl dgst -sha256 -hmac 0123456789abcdef -binary | basenc --base64url
	if k, _ := hmac(t.Context(), key); k.Name != "p6VGYcdbzpBnF8pVP9_xueLFeNjHZMjn0j_zm3tQlrE" {
		t.Errorf("HMAC: %s", k.Name)
	}
}

func TestCombinators(t *testing.T) {
	t.Parallel()
	full := lock.Key{Name: "n", Event: "e", Order: "o"}
	for name, c := range map[string]struct {
		key  keyfuncs.Func[lock.Key]
		want lock.Key
	}{
		"once":                         {keyfuncs.Once(itself), lock.Key{Name: "n", Event: "n"}},
		"event from an event":          {keyfuncs.EventFrom(itself, fixed(lock.Key{Name: "n2", Event: "e2", Order: "o2"}, nil)), lock.Key{Name: "n", Event: "e2", Order: "o"}},
		"event from a name":            {keyfuncs.EventFrom(itself, fixed(lock.Key{Name: "n2"}, nil)), lock.Key{Name: "n", Event: "n2", Order: "o"}},
		"order from an order":          {keyfuncs.OrderFrom(itself, fixed(lock.Key{Name: "n2", Event: "e2", Order: "o2"}, nil)), lock.Key{Name: "n", Event: "e", Order: "o2"}},
		"order from a name":            {keyfuncs.OrderFrom(itself, fixed(lock.Key{Name: `"2026-11-21"`}, nil)), lock.Key{Name: "n", Event: "e", Order: `"2026-11-21"`}},
		"order from a number":          {keyfuncs.OrderFrom(itself, fixed(lock.Key{Name: "0217"}, nil)), lock.Key{Name: "n", Event: "e", Order: "003217"}},
		"order from a date":            {keyfuncs.OrderFrom(itself, fixed(lock.Key{Name: "2026-11-21"}, nil)), lock.Key{Name: "n", Event: "e", Order: "2026-11-21"}},
		"joined":                       {keyfuncs.Join(itself, fixed(lock.Key{Name: "a/b"}, nil)), lock.Key{Name: "join/n/a%2Fb", Event: "join/e/", Order: "o"}},
		"joined without events":        {keyfuncs.Join(fixed(lock.Key{Name: "a"}, nil), fixed(lock.Key{Name: "b", Order: "o"}, nil)), lock.Key{Name: "join/a/b"}},
		"a version":                    {keyfuncs.Version(itself, func(lock.Key) string { return "2.1" }, "1.0", "2.1"), full},
		"a version that begins with 2": {keyfuncs.Version(itself, func(lock.Key) string { return "2.1" }, "2."), full},
	} {
		if got, err := c.key(t.Context(), full); got != c.want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestCombinatorsRefuse(t *testing.T) {
	t.Parallel()
	bad, none := fixed(lock.Key{}, errKey), fixed(lock.Key{}, nil)
	version := func(v string) keyfuncs.Func[lock.Key] {
		return keyfuncs.Version(itself, func(lock.Key) string { return v }, "2.1", "3.")
	}
	for name, c := range map[string]struct {
		key   keyfuncs.Func[lock.Key]
		field string // empty: the error of the key function
	}{
		"Prefix": {keyfuncs.Prefix("p", bad), ""}, "Once": {keyfuncs.Once(bad), ""}, "Hash": {keyfuncs.Hash(bad), ""},
		"EventFrom, key": {keyfuncs.EventFrom(bad, itself), ""}, "EventFrom, from": {keyfuncs.EventFrom(itself, bad), ""}, "EventFrom nothing": {keyfuncs.EventFrom(itself, none), "Event"},
		"OrderFrom, key": {keyfuncs.OrderFrom(bad, itself), ""}, "OrderFrom, from": {keyfuncs.OrderFrom(itself, bad), ""}, "OrderFrom nothing": {keyfuncs.OrderFrom(itself, none), "Order"},
		"OrderFrom a fraction": {keyfuncs.OrderFrom(itself, fixed(lock.Key{Name: "1.5"}, nil)), "Order"},
		"OrderFrom a negative": {keyfuncs.OrderFrom(itself, fixed(lock.Key{Name: "-2"}, nil)), "Order"},
		"OrderFrom a power":    {keyfuncs.OrderFrom(itself, fixed(lock.Key{Name: "1e400"}, nil)), "Order"},
		"OrderFrom much":       {keyfuncs.OrderFrom(itself, fixed(lock.Key{Name: strings.Repeat("9", 251)}, nil)), "Order"},
		"Join":                 {keyfuncs.Join(itself, bad), ""}, "Join nothing": {keyfuncs.Join(itself, none), "Name"},
		"another version": {version("2.2"), "version"}, "no version": {version(""), "version"}, "version 30": {version("30.1"), "version"}, "version 3": {version("3"), "version"},
	} {
		_, err := c.key(t.Context(), lock.Key{Name: "n"})
		e, ok := err.(*lock.KeyError)
		if c.field == "" && err != errKey || c.field != "" && (!ok || e.Field != c.field) {
			t.Errorf("%s: %v, want an error of %q", name, err, c.field)
		}
	}
	for want, build := range map[string]func(){
		"at least 16":         func() { keyfuncs.HMAC([]byte("short"), itself) },
		"no version is given": func() { keyfuncs.Version(itself, func(lock.Key) string { return "" }) },
	} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.Contains(p, want) {
					t.Errorf("panicked with %q, want %q", p, want)
				}
			}()
			build()
		}()
	}
}

// FuzzCompose checks that the combinators keep different keys apart, and numbers in
// their order.
func FuzzCompose(f *testing.F) { // F28
	f.Add("a/b", "c", "", "a", "b/c", "")
	f.Add("7", "e", "x", "17", "e", "x")
	f.Add("a%2Fb", "", "", "a/b", "", "")
	combined := []keyfuncs.Func[lock.Key]{
		keyfuncs.Prefix("p", itself), keyfuncs.Join(itself, keyfuncs.Once(itself)), keyfuncs.Hash(itself), keyfuncs.HMAC([]byte("0123456789abcdef"), itself),
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
			k, _ := keyfuncs.Join(fixed(lock.Key{Name: x + "."}, nil), fixed(lock.Key{Name: y + "."}, nil))(t.Context(), a)
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
