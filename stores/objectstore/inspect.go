package objectstore

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// absent is the key of an object that never exists, because no name has it.
const absent = "~none"

// Check implements [driver.Checker]: it reads an object that does not exist. A
// denied action shows at the first acquire, because it may be allowed for the
// names that are locked.
func (s *Store) Check(ctx context.Context) error {
	_, err := s.objects.Get(ctx, absent)
	var e *driver.Error
	if errors.Is(err, ErrNotExist) || errors.As(err, &e) && e.Action != "" {
		return nil
	}
	return err
}

// Read implements [driver.Inspector].
func (s *Store) Read(ctx context.Context, name string) (driver.Row, error) {
	seen, _, err := s.get(ctx, Key(name))
	if err != nil {
		return driver.Row{}, err
	}
	return seen.row("", time.Now()), nil
}

// Rows implements [driver.Inspector]. It lists all keys, and reads the object
// of each name that begins with prefix. Objects whose key no name has are not
// rows, and skipped.
func (s *Store) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		for key, err := range s.objects.Keys(ctx) {
			if err != nil {
				yield(driver.NamedRow{}, err)
				return
			}
			row, ok, err := s.keyed(ctx, key, prefix)
			if err != nil {
				yield(driver.NamedRow{}, err)
				return
			}
			if ok && !yield(row, nil) {
				return
			}
		}
	}
}

// keyed reads the row of a key. It reports false if its name does not begin
// with prefix, or if it was deleted meanwhile.
func (s *Store) keyed(ctx context.Context, key, prefix string) (driver.NamedRow, bool, error) {
	name, long, ok := nameOf(key)
	if !ok || !strings.HasPrefix(name, prefix) && !(long && strings.HasPrefix(prefix, name)) {
		return driver.NamedRow{}, false, nil
	}
	seen, _, err := s.get(ctx, key)
	if err != nil || seen.version == "" {
		return driver.NamedRow{}, false, err
	}
	if long {
		name = seen.Name
	}
	return driver.NamedRow{Name: name, Row: seen.row("", time.Now())}, strings.HasPrefix(name, prefix), nil
}
