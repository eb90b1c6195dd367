package middleware

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
)

// settings are what the options of one decorator say.
type settings struct {
	engine   lock.Options
	store    lock.Store
	table    string
	held     policy
	done     policy
	failOpen bool
	each     eachSettings
}

// eachSettings are for handlers of single records only.
type eachSettings struct {
	concurrency int
	byName      bool
	raise       bool
}

// namespaceVariable is set by the construct to the only namespace whose rows it allows
// the function to write.
const namespaceVariable = "LOCK_NAMESPACE"

// newSettings panics at the first mistake, so that it is met when the function starts
// and not by an event.
func newSettings(opts []Option) *settings {
	s := &settings{done: policy{kind: skip}}
	s.engine.Namespace = cmp.Or(os.Getenv(namespaceVariable), lambdacontext.FunctionName)
	s.engine.KilledAtDeadline = killedAtDeadline()
	s.engine.Holder = holder()
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("lambdalock: option %d is nil: leave it out", i+1))
		}
		o(s)
	}
	s.check()
	return s
}

func (s *settings) check() {
	if s.table != "" && s.store != nil {
		panic(fmt.Sprintf("lambdalock: Table(%q) and Store are both given, and only one can hold the locks: leave one of them out", s.table))
	}
	if allowed := os.Getenv(namespaceVariable); allowed != "" && s.engine.Namespace != allowed {
		panic(fmt.Sprintf("lambdalock: Namespace(%q) differs from %s=%q, the only one that the function's permission is for: leave the option out, or give the construct the same namespace", s.engine.Namespace, namespaceVariable, allowed))
	}
	for _, d := range []struct {
		option  string
		value   time.Duration
		least   time.Duration
		example string
	}{
		// No source delivers again within a second only.
		{"Remember", s.engine.Remember, time.Second, "24*time.Hour"},
		// Less than a millisecond is less than any request to a store takes.
		{"Wait", s.engine.Wait, time.Millisecond, "5*time.Second"},
		{"Reserve", s.engine.Reserve, time.Millisecond, "500*time.Millisecond"},
		{"CompleteWithin", s.engine.CompleteWithin, time.Millisecond, "5*time.Second"},
		// The engine refuses short leases too, but does not speak of units.
		{"Lease", s.engine.Lease, time.Millisecond, "30*time.Second"},
		{"Heartbeat", s.engine.Heartbeat, time.Millisecond, "20*time.Second"},
	} {
		if d.value > 0 && d.value < d.least {
			panic(fmt.Sprintf("lambdalock: %s(%v): durations have units, write %s for example; the least is %v", d.option, d.value, d.example, d.least))
		}
	}
}

// logger gets warnings that are no outcome of an event.
func (s *settings) logger() *slog.Logger {
	if s.engine.Logger == nil {
		return slog.Default()
	}
	return s.engine.Logger
}

// refuse is the answer to a mistake in an option.
func refuse(mistake string) { panic("lambdalock: " + mistake) }

// isNil reports whether v is nil or an interface that holds a nil pointer, whose methods
// would fail at the first event.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
