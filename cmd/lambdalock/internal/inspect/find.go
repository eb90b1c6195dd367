package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// A NotFoundError says that no row has the name.
type NotFoundError struct{ Names []string }

// Error implements error.
func (e *NotFoundError) Error() string {
	var names []string
	for _, name := range e.Names {
		names = append(names, Safe(name))
	}
	return "there is no row " + strings.Join(names, " and no row ") +
		": the name was never locked, or its row was deleted since; is it another namespace or store?"
}

// Find returns the row that a person means by key: a name as the key function
// gives it, in the namespace, or a whole stored name. The error is a
// *NotFoundError if there is none. If only further slots of the name have rows,
// it returns the zero Row and the name of the first slot.
func Find(ctx context.Context, store driver.Inspector, namespace, key string) (driver.NamedRow, error) {
	var names []string // without a row
	var refusal error
	for _, name := range candidates(namespace, key) {
		row, err := store.Read(ctx, name)
		switch {
		case Denied(err): // perhaps another name has a row
			refusal = cmp.Or(refusal, err)
		case err != nil:
			return driver.NamedRow{}, err
		case !row.Unknown():
			return driver.NamedRow{Name: name, Row: row}, nil
		default:
			names = append(names, name)
		}
	}
	for _, name := range names {
		if slots, err := Slots(ctx, store, name); err != nil || len(slots) > 0 {
			return driver.NamedRow{Name: name}, err
		}
	}
	if refusal != nil {
		return driver.NamedRow{}, refusal
	}
	meanings := Meanings(key) // the last one, if it is quoted, as Error quotes it again
	return driver.NamedRow{}, &NotFoundError{candidates(namespace, meanings[len(meanings)-1])}
}

// Other returns another name than found of which there is a row, if only that
// of a further slot, and which a person may mean by key without a namespace. It
// returns "" if there is none.
func Other(ctx context.Context, store driver.Inspector, key, found string) (string, error) {
	for _, name := range candidates("", key) {
		if name == found {
			continue
		}
		row, err := store.Read(ctx, name)
		exists := !row.Unknown()
		if err == nil && !exists {
			var slots []driver.NamedRow
			slots, err = Slots(ctx, store, name)
			exists = len(slots) > 0
		}
		switch {
		case Denied(err):
		case lasting(err), err == nil && exists: // the store has answered for found
			return name, nil
		case err != nil:
			return "", err
		}
	}
	return "", nil
}

// Denied reports whether the store does not let the caller read a row. There
// may be none: S3 denies to read what does not exist, unless s3:ListBucket is
// allowed.
func Denied(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Lasting && e.Action != ""
}

// FindDigest returns the names with that digest whose stored names begin with
// prefix, each with the row of its first slot, which may be the zero Row. It
// reads all rows that begin with prefix.
func FindDigest(ctx context.Context, store driver.Inspector, prefix, digest string) ([]driver.NamedRow, error) {
	rows := map[string]driver.Row{}
	for row, err := range store.Rows(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		p := split(row.Name)
		if p.digest() != digest {
			continue
		}
		name := p.prefix + p.name
		switch _, known := rows[name]; {
		case p.slot == 1:
			rows[name] = row.Row
		case !known:
			rows[name] = driver.Row{} // until that of the first slot is found
		}
	}
	var found []driver.NamedRow
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		found = append(found, driver.NamedRow{Name: name, Row: rows[name]})
	}
	return found, nil
}

// Slots returns the rows of the further slots that the lock of a name has, if
// it is limited. The row of the name does not tell: the first slot is that of a
// lock without a limit, too, and remembers its events.
func Slots(ctx context.Context, store driver.Inspector, name string) ([]driver.NamedRow, error) {
	p := split(name)
	if p.slot > 1 || p.prefix == "" || p.name == "" {
		return nil, nil
	}
	slots := make([]driver.NamedRow, lock.MaxLimit-1)
	errs := make([]error, len(slots))
	next := make(chan int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range next {
				slots[i].Name = p.slotName(i + 2)
				slots[i].Row, errs[i] = store.Read(ctx, slots[i].Name)
			}
		})
	}
	for i := range slots {
		next <- i
	}
	close(next)
	wg.Wait()
	var taken []driver.NamedRow
	denied := false
	for i, s := range slots {
		switch {
		case Denied(errs[i]):
			denied, errs[i] = true, nil
		case !s.Unknown():
			taken = append(taken, s)
		}
	}
	err := cmp.Or(errs...)
	if denied && err == nil { // there are none, if the first slot may be read
		_, err = store.Read(ctx, name)
	}
	return taken, err
}

// Inspector returns the store as one whose rows can be read.
func Inspector(store driver.Store) (driver.Inspector, error) {
	if i, ok := store.(driver.Inspector); ok {
		return i, nil
	}
	return nil, errors.New("the rows of this store cannot be read: " + fmt.Sprintf("%T", store) + " is not a driver.Inspector")
}

// ReadAll yields the rows that people mean by the keys, as Find has it, each
// time that it is ranged over. If a key has another row, it leaves out what may
// not be read, unless an earlier time has read it: then it exists. Its errors
// are as those of [driver.Inspector.Rows].
func ReadAll(ctx context.Context, store driver.Inspector, namespace string, keys []string) iter.Seq2[driver.NamedRow, error] {
	known := map[string]bool{} // to have a row, from an earlier time
	return func(yield func(driver.NamedRow, error) bool) {
		answered, unreadable := false, map[string]error{}
		for _, key := range keys {
			found, refusal := false, error(nil)
			for _, name := range candidates(namespace, key) {
				row, err := store.Read(ctx, name)
				switch {
				case Denied(err):
					answered, refusal = true, cmp.Or(refusal, err)
					if known[name] {
						unreadable[name] = err
					}
					continue
				case lasting(err):
					found, unreadable[name] = true, err
					continue
				case err != nil:
					yield(driver.NamedRow{}, err)
					return
				}
				answered, known[name] = true, !row.Unknown()
				if row.Unknown() {
					continue
				}
				if !yield(driver.NamedRow{Name: name, Row: row}, nil) {
					return
				}
				found = true
			}
			if refusal != nil && !found {
				yield(driver.NamedRow{}, refusal)
				return
			}
		}
		for name, err := range unreadable {
			if !answered {
				name = "" // the store answers for no name, so it is not because of a row
			}
			if !yield(driver.NamedRow{Name: name}, err) || !answered {
				return
			}
		}
	}
}

// lasting reports whether the store would refuse a later try, too.
func lasting(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Lasting
}
