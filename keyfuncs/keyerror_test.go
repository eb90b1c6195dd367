package keyfuncs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// errNoOrder is how a key function with one error for all events declares it.
var errNoOrder = &lock.NoKeyError{Field: "order", Reason: "is missing"}

// TestSentinelKeyErrorsStayUnchanged: an envelope says where the field is, and
// must not write that into an error which all invocations share.
func TestSentinelKeyErrorsStayUnchanged(t *testing.T) {
	t.Parallel()
	message := keyfuncs.SQSBody(func(context.Context, struct{}) (lock.Key, error) { return lock.Key{}, errNoOrder })
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			_, err := message(t.Context(), events.SQSMessage{MessageId: "m", Body: "{}"})
			var e *lock.NoKeyError
			if !errors.As(err, &e) || e.Field != "body.order" {
				t.Errorf("%v, want a NoKeyError of body.order", err)
			}
		})
	}
	all.Wait()
	if *errNoOrder != (lock.NoKeyError{Field: "order", Reason: "is missing"}) {
		t.Errorf("the shared error became %+v", *errNoOrder)
	}
}

// TestWrappedKeyErrorsAreLocated: a key function may add to an error what it
// knows. The error stays a NoKeyError, and what it wraps can still be found.
func TestWrappedKeyErrorsAreLocated(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	inner := func(context.Context, struct{}) (lock.Key, error) {
		return lock.Key{}, fmt.Errorf("customer: %w (%w)", errNoOrder, cause)
	}
	_, err := keyfuncs.SNSBody(inner)(t.Context(), events.SNSEventRecord{SNS: events.SNSEntity{MessageID: "m", Message: "{}"}})
	e, ok := err.(*lock.NoKeyError)
	if !ok || e.Field != "Sns.Message.order" || e.Reason != "is missing" {
		t.Fatalf("%T %v, want a NoKeyError of Sns.Message.order", err, err)
	}
	if !errors.Is(err, cause) || !errors.Is(err, errNoOrder) {
		t.Errorf("%v does not unwrap to what the key function returned", err)
	}
}

// TestOtherErrorsPassThrough: an envelope changes no other error.
func TestOtherErrorsPassThrough(t *testing.T) {
	t.Parallel()
	for _, want := range []error{errors.New("another"), keyfuncs.ErrIgnore, (*lock.NoKeyError)(nil)} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			t.Parallel()
			key := inQueue(keyfuncs.SQSBody(func(context.Context, struct{}) (lock.Key, error) { return lock.Key{}, want }))
			if _, err := key(t.Context(), "{}"); err != want {
				t.Errorf("became %v", err)
			}
		})
	}
}
