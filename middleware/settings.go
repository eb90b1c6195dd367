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
	"github.com/lambdalock/lambdalock/lock/driver"
)

// settings are what the options of one decorator say.
type settings struct {
	engine    lock.Options
	fixed     time.Duration // of FixedLease
	heartbeat time.Duration // of Heartbeat
	store     driver.Store
	table     string
	held      policy
	completed policy
	failOpen  bool
	each      eachSettings
}

// eachSettings are only for handlers of single records.
type eachSettings struct {
	concurrency int
	byName      bool
	raise       bool
}

// namespaceVariable is set by the CDK construct to the only namespace whose rows the
// function may write.
const namespaceVariable = "LOCK_NAMESPACE"

// newSettings returns the settings for events, or records, of type event. It panics
// at the first mistake, so that the mistake is met when the function starts and not
// by an event.
func newSettings(event reflect.Type, opts []Option) *settings {
	s := &settings{completed: policy{kind: skip}}
	s.engine.Namespace = cmp.Or(os.Getenv(namespaceVariable), lambdacontext.FunctionName)
	s.engine.Holder = holder()
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("lambdalock: option %d is nil: leave it out", i+1))
		}
		o(s)
	}
	s.check()
	if s.engine.Remember == 0 {
		s.engine.Remember = remember[event] // or package lock's default
	}
	switch {
	case s.fixed != 0:
		s.engine.Lease = lock.FixedLease(s.fixed)
	case s.heartbeat != 0:
		s.engine.Lease = lock.Heartbeat(s.heartbeat)
	case killedAtDeadline():
		s.engine.Lease = lock.UntilDeadline()
	}
	return s
}

func (s *settings) check() {
	if s.table != "" && s.store != nil {
		panic(fmt.Sprintf("lambdalock: Table(%q) and Store are both given, and only one can hold the locks: leave one of them out", s.table))
	}
	if s.fixed != 0 && s.heartbeat != 0 {
		panic(fmt.Sprintf("lambdalock: FixedLease(%v) and Heartbeat(%v) are both given, and a heartbeat is itself a lease, renewed every third of it: leave one of them out", s.fixed, s.heartbeat))
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
		// Every request to a store takes longer than a millisecond.
		{"Wait", s.engine.MaxWait, time.Millisecond, "5*time.Second"},
		{"Reserve", s.engine.Reserve, time.Millisecond, "500*time.Millisecond"},
		{"CompleteWithin", s.engine.CompleteWithin, time.Millisecond, "5*time.Second"},
		// Package lock refuses short leases too, but does not speak of units.
		{"FixedLease", s.fixed, time.Millisecond, "30*time.Second"},
		{"Heartbeat", s.heartbeat, time.Millisecond, "20*time.Second"},
	} {
		if d.value > 0 && d.value < d.least {
			panic(fmt.Sprintf("lambdalock: %s(%v): durations have units, write %s for example; the least is %v", d.option, d.value, d.example, d.least))
		}
	}
}

// logger returns the logger of the options, or the default one.
func (s *settings) logger() *slog.Logger {
	if s.engine.Logger == nil {
		return slog.Default()
	}
	return s.engine.Logger
}

// refuse answers a mistake in an option.
func refuse(mistake string) { panic("lambdalock: " + mistake) }

// isNil reports whether v is nil or an interface that holds a nil pointer, whose
// methods would fail at the first event.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
