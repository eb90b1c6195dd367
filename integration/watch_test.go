package integration_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// reading is what a watcher saw of a row in which somebody holds the name.
type reading struct {
	name, holder string
	began        time.Time // before the row was read
	until        time.Time
}

// watcher reads the rows of some names all the time, over connections without
// faults.
type watcher struct {
	store    driver.Inspector
	names    []string // as they are stored
	readings int
	held     []reading
	failures int   // readings without an answer: the machine may be busy
	err      error // of the last of them
	quit     context.CancelFunc
	done     chan struct{}
}

func startWatcher(t *testing.T, p place, names []string) *watcher {
	t.Helper()
	ctx, quit := context.WithCancel(t.Context())
	w := &watcher{store: p.store(t, nil).(driver.Inspector), names: names, quit: quit, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			w.look(ctx)
		}
	}()
	return w
}

// look reads each row once.
func (w *watcher) look(ctx context.Context) {
	for _, name := range w.names {
		_ = delayFor(ctx, time.Millisecond) // so that it leaves the server to the others
		began := time.Now()
		row, err := w.store.Read(ctx, name)
		if err != nil {
			if ctx.Err() == nil {
				w.failures++
				w.err = err
			}
			continue
		}
		w.readings++
		if row.Token != "" && row.Until.After(began) {
			w.held = append(w.held, reading{name, row.Holder, began, row.Until})
		}
	}
}

// stop ends the watcher, which must have seen most of what it looked at.
func (w *watcher) stop(t *testing.T) {
	t.Helper()
	w.quit()
	<-w.done
	if w.readings < 10*w.failures || w.readings == 0 {
		t.Errorf("the watcher had %d readings, and %d failed, the last with %v", w.readings, w.failures, w.err)
	}
}

// check returns how many readings found a name held for nobody, and the first
// of them: those that began after the holder had nothing left.
func (w *watcher) check(ends map[string]turnEnd) (n int, first string) {
	for _, r := range w.held {
		end, ok := ends[r.holder]
		if !ok || end.Left != leftNothing || !r.began.After(end.At) {
			continue
		}
		if n++; first == "" {
			first = fmt.Sprintf("%s was held for %s, which had ended %v before", r.name, r.holder, r.began.Sub(end.At))
		}
	}
	return n, first
}
