package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
	client, err := dynamostore.NewClient(ctx)
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

// The handler counts the visits of a page. It is called three times for one
// visit, and counts it once, although its update would count again.
func ExampleTransact() {
	client := clientOf(fakedynamo.New()) // in a function, dynamodb.NewFromConfig
	ctx := context.Background()
	for _, table := range []string{"locks", "pages"} {
		if err := dynamostore.EnsureTable(ctx, client, table); err != nil {
			panic(err)
		}
	}
	type visit struct{ ID, Page string }
	count := func(ctx context.Context, v visit) error {
		_, err := dynamostore.Transact(ctx, client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
			Update: &types.Update{
				TableName:        aws.String("pages"),
				Key:              map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: v.Page}},
				UpdateExpression: aws.String("SET visits = if_not_exists(visits, :zero) + :one"),
				ExpressionAttributeValues: map[string]types.AttributeValue{
					":zero": &types.AttributeValueMemberN{Value: "0"}, ":one": &types.AttributeValueMemberN{Value: "1"},
				},
			},
		}}})
		return err
	}
	locker, err := lock.New(dynamostore.New(client, "locks"), nil)
	if err != nil {
		panic(err)
	}
	v := visit{ID: "v-1", Page: "/home"}
	for range 3 {
		err := locker.Do(ctx, lock.Key{Name: v.ID, Event: v.ID}, func(ctx context.Context) error { return count(ctx, v) })
		if err != nil && !errors.Is(err, lock.ErrCompleted) {
			panic(err)
		}
	}
	page, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("pages"), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: "/home"}},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(page.Item["visits"].(*types.AttributeValueMemberN).Value)
	// Output: 1
}
