package integration_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

var errConnectionLost = errors.New("connection lost after the request was applied")

// wire is the network between a client and a server. It counts requests, delays
// each of them, and can drop answers.
type wire struct {
	next          *http.Transport
	delay         time.Duration
	requests      atomic.Int64
	applyThenDrop atomic.Int64 // how many of the next answers are dropped
}

func newWire(delay time.Duration) *wire {
	return &wire{next: newTransport(), delay: delay}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.requests.Add(1)
	if err := delayFor(r.Context(), w.delay); err != nil {
		return nil, err
	}
	resp, err := w.next.RoundTrip(r)
	if err == nil && w.applyThenDrop.Add(-1) >= 0 {
		resp.Body.Close() // unread, so the connection is closed with it
		w.next.CloseIdleConnections()
		return nil, errConnectionLost
	}
	return resp, err
}

// take returns how many requests were sent since it was last called.
func (w *wire) take() int64 { return w.requests.Swap(0) }

func delayFor(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
