package objectstore

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// absent is the key of an object that cannot exist, because no name maps to it.
const absent = "~none"

// Check implements [driver.Checker]. It reads an object that does not exist
// and, if the service might not honour conditions, probes it. It ignores a
// denied read, because the names to be locked may be readable; if not, the
// first acquisition reports it.
func (s *Store) Check(ctx context.Context) error {
	_, err := s.objects.Get(ctx, absent)
	if !errors.Is(err, ErrNotExist) && !denied(err) {
		return err
	}
	if c, ok := s.objects.(driver.Checker); ok {
		return c.Check(ctx)
	}
	return nil
}

// denied reports whether the caller lacks a permission.
func denied(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Action != ""
}

// Read implements [driver.Inspector].
func (s *Store) Read(ctx context.Context, name string) (driver.Row, error) {
	seen, err := s.patiently(ctx, Key(name))
	if err != nil {
		return driver.Row{}, err
	}
	return seen.row("", time.Now()), nil
}

const (
	tries      = 4 // of a read for a person
	firstPause = 200 * time.Millisecond
	longest    = 15 * time.Second // of the tries that have another after them
)

// patiently reads an object for a person, who would have to begin again: unlike
// the reads of locks, which package lock repeats, it is repeated here.
func (s *Store) patiently(ctx context.Context, key string) (sight, error) {
	c := clock.From(ctx)
	began := c.Now()
	for try := 1; ; try++ {
		seen, _, err := s.get(ctx, key)
		var e *driver.Error
		if !errors.As(err, &e) || e.Lasting || try == tries || c.Now().Sub(began) > longest {
			return seen, err
		}
		pause := firstPause << (try - 1)
		if c.Sleep(ctx, pause/2+clock.Jitter(c, pause/2)) != nil {
			return seen, err
		}
	}
}

// readers is the number of objects that Rows reads at the same time.
const readers = 64

// listed is what Rows yields.
type listed struct {
	row driver.NamedRow
	err error
}

// Rows implements [driver.Inspector]. It lists all keys and reads the objects
// whose names begin with prefix, 64 at a time. It skips objects whose keys are
// not those of a name.
func (s *Store) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		rows, stop := make(chan listed), make(chan struct{})
		go s.list(ctx, prefix, rows, stop)
		defer func() { // no goroutine outlives the iteration
			close(stop)
			cancel()
			for range rows {
			}
		}()
		for r := range rows {
			if !yield(r.row, r.err) || r.err != nil && r.row.Name == "" {
				return
			}
		}
	}
}

// list sends the rows to rows, then the error that ended the listing, if any,
// and closes rows. It returns early when stop is closed.
func (s *Store) list(ctx context.Context, prefix string, rows chan<- listed, stop <-chan struct{}) {
	defer close(rows)
	send := func(r listed) {
		select {
		case rows <- r:
		case <-stop:
		}
	}
	var reads sync.WaitGroup
	defer reads.Wait()
	free := make(chan struct{}, readers)
	for key, err := range s.objects.Keys(ctx) {
		if err != nil {
			reads.Wait()
			send(listed{err: err})
			return
		}
		select {
		case free <- struct{}{}:
		case <-stop:
			return
		}
		reads.Go(func() {
			defer func() { <-free }()
			if row, ok, err := s.keyed(ctx, key, prefix); ok || err != nil {
				send(listed{row, err})
			}
		})
	}
}

// keyed returns the row of a key. It reports false if its name does not begin
// with prefix, or if the object was deleted in the meantime. An error that
// concerns only this object comes with its name, or the beginning of a long
// one.
func (s *Store) keyed(ctx context.Context, key, prefix string) (driver.NamedRow, bool, error) {
	name, long, ok := nameOf(key)
	if !ok || !strings.HasPrefix(name, prefix) && !(long && strings.HasPrefix(prefix, name)) {
		return driver.NamedRow{}, false, nil
	}
	seen, err := s.patiently(ctx, key)
	if err != nil || seen.version == "" {
		if !seen.read && !s.refusesOnly(ctx, err) {
			name = ""
		}
		return driver.NamedRow{Name: name}, false, err
	}
	if long {
		name = seen.Name
	}
	return driver.NamedRow{Name: name, Row: seen.row("", time.Now())}, strings.HasPrefix(name, prefix), nil
}

// refusesOnly reports whether the service refuses to read one object, with the
// given error, but not others: it has been archived, for example. Credentials
// that have expired meanwhile concern all.
func (s *Store) refusesOnly(ctx context.Context, err error) bool {
	var e *driver.Error
	if !errors.As(err, &e) || !e.Lasting || e.Action != "" {
		return false
	}
	seen, err := s.patiently(ctx, absent)
	return err == nil && seen.version == ""
}
