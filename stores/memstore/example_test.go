package memstore_test

import (
	"context"
	"fmt"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func ExampleNew() {
	locker, err := lock.New(memstore.New(), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(locker.Do(context.Background(), lock.Key{Name: "n"}, func(context.Context) error { return nil }))
	// Output: <nil>
}
