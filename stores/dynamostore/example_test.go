package dynamostore_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// The embedded endpoint replaces DynamoDB here. Without these variables the
// store uses the real one.
func ExampleOpen() {
	srv := httptest.NewServer(fakedynamo.New())
	defer srv.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": srv.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
	} {
		before, set := os.LookupEnv(name)
		_ = os.Setenv(name, value)
		defer func() {
			if _ = os.Unsetenv(name); set {
				_ = os.Setenv(name, before)
			}
		}()
	}

	ctx := context.Background()
	client, err := dynamostore.OpenClient(ctx)
	if err != nil {
		panic(err)
	}
	if err := dynamostore.EnsureTable(ctx, client, "locks"); err != nil { // once, not in the function
		panic(err)
	}
	store, err := dynamostore.Open(ctx, "locks") // or dynamostore.New(client, "locks")
	if err != nil {
		panic(err)
	}
	locker, err := lock.New(store, nil)
	if err != nil {
		panic(err)
	}
	err = locker.Do(ctx, lock.Key{Name: "job"}, func(context.Context) error {
		fmt.Println("nobody else works on this")
		return nil
	})
	fmt.Println(err)
	// Output:
	// nobody else works on this
	// <nil>
}
