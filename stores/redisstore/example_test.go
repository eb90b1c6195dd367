package redisstore_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

func ExampleNew() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()

	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	store, err := redisstore.New(client)
	if err != nil {
		panic(err)
	}
	locker, err := lock.New(store, nil)
	if err != nil {
		panic(err)
	}
	for range 2 {
		fmt.Println(locker.Do(context.Background(), lock.Key{Name: "order/17", Event: "e1"}, func(context.Context) error {
			fmt.Println("works")
			return nil
		}))
	}
	// Output:
	// works
	// <nil>
	// lambdalock: key ba125075dcdd: this event was already completed
}
