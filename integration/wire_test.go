package integration_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

var errConnectionLost = errors.New("connection lost")

// wire is the network between a client and a server. It counts requests, delays
// each of them, and can drop answers.
type wire struct {
	next          *http.Transport
	delay         time.Duration
	requests      atomic.Int64
	applyThenDrop atomic.Int64 // how many of the next answers are dropped
	timedOut      atomic.Int64 // requests whose answer was not waited for
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
	if r.Context().Err() != nil {
		w.timedOut.Add(1)
	}
	return resp, err
}

// take returns how many requests were sent since it was last called.
func (w *wire) take() int64 { return w.requests.Swap(0) }

// lossyWire loses one in oneIn requests, and as many answers. As many requests
// again arrive late, after the client has given them up (F1, F2, F3).
type lossyWire struct {
	next  *http.Transport
	oneIn int
	late  sync.WaitGroup // requests that are on their way
}

// RoundTrip implements http.RoundTripper.
func (w *lossyWire) RoundTrip(r *http.Request) (*http.Response, error) {
	dice := rand.IntN(w.oneIn)
	switch dice {
	case 0:
		return nil, errConnectionLost
	case 1:
		return nil, errors.Join(errConnectionLost, w.sendLate(r))
	}
	resp, err := w.next.RoundTrip(r)
	if err == nil && dice == 2 {
		resp.Body.Close() // unread, so the connection is closed with it
		return nil, errConnectionLost
	}
	return resp, err
}

// sendLate sends a request after the next attempts, or after a whole turn.
func (w *lossyWire) sendLate(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	w.late.Go(func() {
		_ = delayFor(late.Context(), rand.N(300*time.Millisecond))
		if resp, err := w.next.RoundTrip(late); err == nil {
			resp.Body.Close()
		}
	})
	return err
}

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
