package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func ExampleLocker_Do() {
	locker, err := lock.New(memstore.New(), &lock.Options{Namespace: "reports"})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	key := lock.Key{Name: "monthly", Event: "2026-11"}
	for range 2 {
		err := locker.Do(ctx, key, func(ctx context.Context) error {
			lease, _ := lock.FromContext(ctx)
			fmt.Println("working on", lease.Key.Event)
			return nil
		})
		fmt.Println(err, errors.Is(err, lock.ErrCompleted))
	}
	// Output:
	// working on 2026-11
	// <nil> false
	// lambdalock: key 9169e3ca73ee: this event was already completed true
}

func ExampleLocker_Acquire() {
	locker, err := lock.New(memstore.New(), &lock.Options{MaxWait: time.Second, Lease: lock.Heartbeat(10 * time.Second)})
	if err != nil {
		panic(err)
	}
	held, err := locker.Acquire(context.Background(), lock.Key{Name: "instance/i-8abd832c32"})
	if err != nil {
		panic(err)
	}
	ctx := held.Context() // ends with lock.ErrLost when the lease is lost
	fmt.Println(ctx.Err(), held.Lease().Fence > 0)
	fmt.Println(held.Complete())
	// Output:
	// <nil> true
	// <nil>
}

func ExampleFromContext() {
	_, ok := lock.FromContext(context.Background())
	fmt.Println(ok)
	// Output: false
}

func ExampleKey_Digest() {
	fmt.Println(lock.Key{Name: "users/jane@example.com"}.Digest())
	// Output: 6c31331ad38b
}
