package keyfuncs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// A transfer locks both of its accounts. The id of the event tells duplicates.
func ExampleAll() {
	type transfer struct{ From, To string }
	account := func(find func(transfer) string) keyfuncs.Func[events.EventBridgeEvent] {
		return keyfuncs.EventBridgeDetail(keyfuncs.Prefix(keyfuncs.ByField(find), "account"))
	}
	keys := keyfuncs.All(
		account(func(t transfer) string { return t.From }),
		account(func(t transfer) string { return t.To }),
	)
	all, err := keys(context.Background(), events.EventBridgeEvent{
		ID: "7bf73129", Source: "shop", DetailType: "Transfer", Detail: []byte(`{"From":"omar","To":"jane"}`),
	})
	fmt.Println(len(all), err)
	for _, k := range all {
		show(k, nil)
	}
	// Output:
	// 2 <nil>
	// name "account/omar", event "7bf73129", order "", error <nil>
	// name "account/jane", event "7bf73129", order "", error <nil>
}

func TestAll(t *testing.T) {
	t.Parallel()
	a, b := lock.Key{Name: "a", Event: "e", Order: "1", Payload: "p"}, lock.Key{Name: "b"}
	give := func(k lock.Key) keyfuncs.Func[lock.Key] { return fixed(k, nil) }
	fail := func(err error) keyfuncs.Func[lock.Key] { return fixed(lock.Key{Name: "x"}, err) }
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		keys []keyfuncs.Func[lock.Key]
		want []lock.Key
		err  error
	}{
		"both, unchanged":           {[]keyfuncs.Func[lock.Key]{give(b), give(a)}, []lock.Key{b, a}, nil},
		"one":                       {[]keyfuncs.Func[lock.Key]{give(a)}, []lock.Key{a}, nil},
		"an error":                  {[]keyfuncs.Func[lock.Key]{give(a), fail(boom)}, nil, boom},
		"a later error":             {[]keyfuncs.Func[lock.Key]{fail(keyfuncs.ErrNoLock), fail(boom)}, nil, boom},
		"a nil NoKeyError as error": {[]keyfuncs.Func[lock.Key]{give(a), fail((*lock.NoKeyError)(nil))}, nil, (*lock.NoKeyError)(nil)},
		"nothing to work on":        {[]keyfuncs.Func[lock.Key]{give(a), fail(keyfuncs.ErrIgnore)}, nil, keyfuncs.ErrIgnore},
		"one needs no lock":         {[]keyfuncs.Func[lock.Key]{fail(keyfuncs.ErrNoLock), give(a)}, []lock.Key{a}, nil},
		"one needs no lock, by far": {[]keyfuncs.Func[lock.Key]{give(a), fail(fmt.Errorf("GET: %w", keyfuncs.ErrNoLock))}, []lock.Key{a}, nil},
		"none needs a lock":         {[]keyfuncs.Func[lock.Key]{fail(keyfuncs.ErrNoLock), fail(keyfuncs.ErrNoLock)}, nil, keyfuncs.ErrNoLock},
		"no name is for the engine": {[]keyfuncs.Func[lock.Key]{give(lock.Key{}), give(a)}, []lock.Key{{}, a}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := keyfuncs.All(c.keys...)(t.Context(), lock.Key{})
			if !slices.Equal(got, c.want) || err != c.err {
				t.Errorf("%+v, %v; want %+v, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestAllPanics(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]func(){
		"no functions":   func() { keyfuncs.All[lock.Key]() },
		"a nil function": func() { keyfuncs.All(itself, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			all()
		})
	}
}
