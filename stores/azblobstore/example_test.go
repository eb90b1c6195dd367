package azblobstore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azuretest"
)

// The client is yours: container.NewClient with an identity, or
// container.NewClientFromConnectionString.
func ExampleNew() {
	client := azuretest.NewFake().Container()
	locker, err := lock.New(azblobstore.New(client, "locks"), nil)
	if err != nil {
		panic(err)
	}
	work := func(context.Context) error {
		fmt.Println("once")
		return nil
	}
	key := lock.Key{Name: "order/17", Event: "paid"}
	fmt.Println(locker.Do(context.Background(), key, work))
	fmt.Println(errors.Is(locker.Do(context.Background(), key, work), lock.ErrCompleted))
	// Output:
	// once
	// <nil>
	// true
}
