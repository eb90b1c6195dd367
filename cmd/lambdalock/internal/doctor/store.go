package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const (
	// roundTrips is how many renewals the latency is the median of.
	roundTrips = 5
	// slow is half of what an attempt of a lock may take by default.
	slow = 500 * time.Millisecond
	// patience is how long a request may take.
	patience = 5 * time.Second
)

// Store checks a store with requests about a name of its own. It ends with the
// first line that tells that the store keeps no locks, which is an error for
// its owner, or for who set its table's name. The error is that of a store that
// does not answer.
func Store(ctx context.Context, store driver.Store, namespace string) ([]Line, error) {
	var found lines
	if c, ok := store.(driver.Checker); ok {
		switch err := within(ctx, c.Check); {
		case silent(err):
			return nil, err
		case denied(err): // the writes below say what does not work
		case err != nil:
			found.refused(Error, checkStore, err)
			return found, nil
		default:
			found.ok(checkStore, "it answers, and passes its own check")
		}
	}
	name := stored.Name(prefix(namespace), "lambdalock doctor")
	if err := found.checkWrites(ctx, store, name); err != nil || !Usable(found) {
		return found, err
	}
	if i, ok := store.(driver.Inspector); ok {
		err := within(ctx, func(ctx context.Context) error { _, err := i.Read(ctx, name); return err })
		if err != nil {
			found.refused(Warning, checkRead, err)
		} else {
			found.ok(checkRead, "you may read rows: show and explain work")
		}
	}
	return found, nil
}

// Usable reports whether the lines tell of no store that keeps no locks.
func Usable(found []Line) bool {
	return !slices.ContainsFunc(found, func(l Line) bool { return l.Level == Error && (l.For == forStore || l.For == forName) })
}

func prefix(namespace string) string {
	if namespace == "" {
		return ""
	}
	return stored.Prefix(namespace)
}

func within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f(ctx)
}

// checkWrites renews a lock that it does not hold, some times. DynamoDB refuses
// that after all checks of a write, and nothing is changed. Other stores only
// read, so there it also acquires and releases the lock.
func (l *lines) checkWrites(ctx context.Context, store driver.Store, name string) error {
	token := rand.Text()
	var took []time.Duration
	for range roundTrips {
		began := time.Now()
		now := began.Round(0)
		err := within(ctx, func(ctx context.Context) error {
			_, _, err := store.Renew(ctx, &driver.Renewal{Name: name, Token: token, Now: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(time.Hour)})
			return err
		})
		if err != nil {
			return l.wrote(err)
		}
		took = append(took, time.Since(began))
	}
	if _, ok := store.(*dynamostore.Store); !ok {
		if err := within(ctx, func(ctx context.Context) error { return cycle(ctx, store, name, token) }); err != nil {
			return l.wrote(err)
		}
	}
	l.ok(checkWrite, "you may write rows: locks can be acquired, renewed and released")
	l.checkLatency(took)
	return nil
}

// cycle acquires and releases a lock. Nothing is wrong if another doctor has
// it.
func cycle(ctx context.Context, store driver.Store, name, token string) error {
	now := time.Now().Round(0)
	_, ok, err := store.Acquire(ctx, &driver.Claim{
		Name: name, Token: token, Stamp: now, Now: now, Until: now.Add(patience), DeleteAfter: now.Add(time.Minute), Holder: "lambdalock doctor",
	})
	if err == nil && ok {
		_, _, err = store.Settle(ctx, &driver.Settlement{Name: name, Token: token, DeleteAfter: now.Add(time.Minute)})
	}
	return err
}

// wrote adds a line for a write that failed, or returns the error of a store
// that does not answer.
func (l *lines) wrote(err error) error {
	switch {
	case silent(err):
		return err
	case denied(err): // with the credentials of who runs it, which may not be the function's
		l.warn(checkWrite, forAccess, "you may not write rows, so release, forget, complete and exec do not work for you; what a function's role may is not known: %s", console.Plain(err))
	case throttled(err):
		l.warn(checkWrite, forStore, "it refuses writes for now, so handlers get no lock in time and their events come again later: %s", console.Plain(err))
	default:
		l.refused(Error, checkWrite, err)
	}
	return nil
}

// throttled reports whether the store asks for fewer requests.
func throttled(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Answered && !e.Lasting
}

func (l *lines) checkLatency(took []time.Duration) {
	slices.Sort(took)
	median := took[len(took)/2].Round(10 * time.Microsecond)
	if median < slow {
		l.ok(checkLatency, "a request takes %v from here", median)
		return
	}
	l.warn(checkLatency, forYou, "a request takes %v from here, and an attempt of a lock has 1 s by default: "+
		"if the functions are as far away, use a store in their Region", median)
}
