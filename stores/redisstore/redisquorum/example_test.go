package redisquorum_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

func ExampleNew() {
	var clients []redis.Scripter
	for range 3 {
		server, err := miniredis.Run()
		if err != nil {
			panic(err)
		}
		defer server.Close()
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer client.Close()
		clients = append(clients, client)
	}
	store, err := redisquorum.New(clients...)
	if err != nil {
		panic(err)
	}
	locker, err := lock.New(store, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(locker.Do(context.Background(), lock.Key{Name: "order/17"}, func(ctx context.Context) error {
		l, _ := lock.FromContext(ctx)
		fmt.Println("works on", l.Key.Name)
		return nil
	}))
	// Output:
	// works on order/17
	// <nil>
}
