package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func placed(t *testing.T) events.EventBridgeEvent {
	t.Helper()
	text, err := os.ReadFile("event.json")
	if err != nil {
		t.Fatal(err)
	}
	var e events.EventBridgeEvent
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDuplicateSendsNothing(t *testing.T) {
	var sent []receipt
	handle := newHandler(func(_ context.Context, r receipt) error {
		sent = append(sent, r)
		return nil
	}, middleware.Store(memstore.New()))
	for range 2 {
		if err := handle(t.Context(), placed(t)); err != nil {
			t.Error(err)
		}
	}
	if want := (receipt{Order: "17", Customer: "jane"}); len(sent) != 1 || sent[0] != want {
		t.Errorf("sent %v, want %v once", sent, want)
	}
}

func TestFailureIsTriedAgain(t *testing.T) {
	down := errors.New("mail server down")
	tries := 0
	handle := newHandler(func(context.Context, receipt) error {
		tries++
		if tries == 1 {
			return down
		}
		return nil
	}, middleware.Store(memstore.New()))
	if err := handle(t.Context(), placed(t)); !errors.Is(err, down) {
		t.Errorf("first delivery: %v, want %v", err, down)
	}
	if err := handle(t.Context(), placed(t)); err != nil || tries != 2 {
		t.Errorf("second delivery: %v after %d tries, want success after 2", err, tries)
	}
}

// Time is fake inside synctest.Test, so nothing here really waits.
func TestDuplicateInProgressComesBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		handle := newHandler(func(context.Context, receipt) error {
			time.Sleep(time.Second) // a slow mail server
			sent++
			return nil
		}, middleware.Store(memstore.New()))
		first := make(chan error)
		go func() { first <- handle(t.Context(), placed(t)) }()
		synctest.Wait() // until the first delivery is sending

		if err := handle(t.Context(), placed(t)); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("duplicate in progress: %v, want %v", err, lock.ErrHeld)
		}
		if err := <-first; err != nil {
			t.Errorf("first delivery: %v", err)
		}
		if err := handle(t.Context(), placed(t)); err != nil {
			t.Errorf("its retry: %v", err)
		}
		if sent != 1 {
			t.Errorf("sent %d times, want once", sent)
		}
	})
}

func TestMemoryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		handle := newHandler(func(context.Context, receipt) error {
			sent++
			return nil
		}, middleware.Store(memstore.New()), middleware.Remember(time.Hour))
		for _, wait := range []time.Duration{0, 59 * time.Minute, 2 * time.Minute} {
			time.Sleep(wait)
			if err := handle(t.Context(), placed(t)); err != nil {
				t.Error(err)
			}
		}
		if sent != 2 {
			t.Errorf("sent %d times, want twice: the second delivery came within the hour, the third after it", sent)
		}
	})
}
