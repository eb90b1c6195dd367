package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

const (
	lossyWaiters = 4                // of each process
	lossyLease   = 10 * time.Second // theirs
	slots        = 2                // of the limited name
	limited      = "limited"
)

var severalNames = []string{"several/a", "several/b", "several/c", "several/d", "several/e"}

// TestLimitOverLossyConnections lets four processes contend for the two slots
// of a name, while requests and answers are lost and others arrive late (F1,
// F2, F3, F5). Never do more than two hold it, and in the end both slots become
// free: if what gives up a claim is lost as well, when its lease ends.
func TestLimitOverLossyConnections(t *testing.T) {
	inEach(t, func(t *testing.T, _ backend, p place) {
		total := lossyTurns()
		holds := contendedHolds(t, "limited", task{Place: p, Turns: total / processes})
		if n := mostHolders(holds); n > slots || len(holds) != total {
			t.Errorf("%d holds, want %d; %d at the same time, want %d at most", len(holds), total, n, slots)
		}
		store, o := p.store(t, nil), lock.Options{Lease: lock.FixedLease(time.Minute)}
		if row, err := store.(driver.Inspector).Read(t.Context(), "/slot:2:"+limited); err != nil || row.Fence == 0 {
			t.Errorf("nobody had the second slot: %+v, error %v", row, err)
		}
		for i := range slots + 1 {
			if o.MaxWait = 0; i < slots {
				o.MaxWait = 2 * lossyLease
			}
			_, err := newLocker(t, store, o).AcquireOneOf(t.Context(), limited, slots)
			if free := i < slots; free && err != nil || !free && !errors.Is(err, lock.ErrHeld) {
				t.Errorf("afterwards, with %d slots held: %v", i, err)
			}
		}
	})
}

// TestSetsOverLossyConnections lets four processes take three of five names at
// a time, each time in another order, while requests and answers are lost and
// others arrive late (F1, F2, F3, F5). Nobody waits for ever, no two hold a
// name at the same time, and in the end all names become free, as a slot does.
func TestSetsOverLossyConnections(t *testing.T) {
	inEach(t, func(t *testing.T, _ backend, p place) {
		total := lossyTurns()
		holds := contendedHolds(t, "several", task{Place: p, Turns: total / processes})
		if len(holds) != 3*total {
			t.Errorf("%d holds, want %d", len(holds), 3*total)
		}
		if err := locktest.CheckHistory(holds); err != nil {
			t.Error(err)
		}
		var keys []lock.Key
		for _, name := range severalNames {
			keys = append(keys, lock.Key{Name: name})
		}
		o := lock.Options{Lease: lock.FixedLease(time.Minute), MaxWait: 2 * lossyLease}
		if _, err := newLocker(t, p.store(t, nil), o).AcquireAll(t.Context(), keys...); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func lossyTurns() int {
	if testing.Short() {
		return 60
	}
	return 2000
}

// deliveredAgain reports whether the source delivers an event again. The wait
// for the last name of a set is cut short where the fixed lease of its first
// one would end.
func deliveredAgain(err error) bool {
	return errors.As(err, new(*lock.StoreError)) || errors.Is(err, context.DeadlineExceeded)
}

// contendLimited is the part of a child that takes slots of one name.
func contendLimited(t task) error {
	return overLossyConnections(t, func(l *lock.Locker) ([]locktest.Hold, func() error, error) {
		lk, err := l.AcquireOneOf(context.Background(), limited, slots)
		if err != nil {
			return nil, nil, err
		}
		return []locktest.Hold{{Name: limited, Fence: lk.Lease().Fence}}, lk.Release, nil
	})
}

// contendSeveral is the part of a child that takes several names at a time.
func contendSeveral(t task) error {
	return overLossyConnections(t, func(l *lock.Locker) ([]locktest.Hold, func() error, error) {
		var keys []lock.Key
		for _, n := range rand.Perm(len(severalNames))[:3] {
			keys = append(keys, lock.Key{Name: severalNames[n]})
		}
		set, err := l.AcquireAll(context.Background(), keys...)
		if err != nil {
			return nil, nil, err
		}
		var holds []locktest.Hold
		for _, lease := range lock.Leases(set.Context()) {
			holds = append(holds, locktest.Hold{Name: lease.Key.Name, Fence: lease.Fence})
		}
		return holds, set.Release, nil
	})
}

// overLossyConnections takes the turns of a child.
func overLossyConnections(t task, acquire func(*lock.Locker) ([]locktest.Hold, func() error, error)) error {
	lossy, wait := newLossyWire(25)
	defer wait()
	store, err := t.open(lossy)
	if err != nil {
		return err
	}
	locker, err := lock.New(store, &lock.Options{
		Lease: lock.FixedLease(lossyLease), MaxWait: 5 * time.Minute, Logger: discard,
	})
	if err != nil {
		return err
	}
	return shareTurns(t, lossyWaiters, func() ([]locktest.Hold, error) {
		holds, release, err := acquire(locker)
		for deliveredAgain(err) {
			holds, release, err = acquire(locker)
		}
		if err != nil {
			return nil, fmt.Errorf("acquire: %w", err)
		}
		start := time.Now()
		<-time.After(time.Millisecond) // work, so that an overlap would be seen
		end := time.Now()
		for i := range holds {
			holds[i].Start, holds[i].End = start, end
		}
		if err := release(); errors.As(err, new(*lock.StoreError)) {
			<-time.After(lossyLease) // what could not be released is free then
		} else if err != nil {
			return nil, fmt.Errorf("release: %w", err)
		}
		return holds, nil
	})
}
