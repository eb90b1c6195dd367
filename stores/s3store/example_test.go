package s3store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// A server in this process replaces S3 here. In a function, make the client
// with s3.NewFromConfig.
func ExampleNew() {
	client := startServer("my-bucket").client()

	locker, err := lock.New(s3store.New(client, "my-bucket", "locks"), &lock.Options{Logger: discard})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	report := func(context.Context) error {
		fmt.Println("the report is made")
		return nil
	}
	key := lock.Key{Name: "report", Event: "2026-11-22"}
	fmt.Println(locker.Do(ctx, key, report))

	var completed *lock.CompletedError
	fmt.Println(errors.As(locker.Do(ctx, key, report), &completed))
	// Output:
	// the report is made
	// <nil>
	// true
}
