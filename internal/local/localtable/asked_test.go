package localtable

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestAsked: what an invocation got is known from its requests.
func TestAsked(t *testing.T) {
	t.Parallel()
	table, err := Start(t.Context(), "locks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	store := dynamostore.New(dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(table.URL), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	}), "locks")
	now := time.Now()
	claim := func(name, holder string, event ...string) {
		t.Helper()
		_, _, err := store.Acquire(t.Context(), &driver.Claim{
			Name: name, Event: strings.Join(event, ""), Token: rand.Text(), Holder: holder, Now: now, Stamp: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	claim("a", "f request 1 log s1")
	claim("a", "f request 2 log s2")
	claim("a", "f request 2 log s2")
	claim("b", "f request 2 log s2")
	claim("c", "f request unknown log s3")
	claim("d", "somebody else")
	claim("e", "f request 5 log s5", "first")
	claim("e", "f request 5 log s5", "second") // as a batch does with two events of one name
	for _, c := range []struct {
		id, stream string
		want       Asked
	}{
		{"1", "s1", Asked{Acquired: 1}},
		{"2", "s2", Asked{Acquired: 1, Refused: 1, Waited: true}},
		{"2", "s2", Asked{}},
		{"3", "s3", Asked{Acquired: 1}},
		{"4", "s4", Asked{}},
		{"5", "s5", Asked{Acquired: 1, Refused: 1}},
	} {
		if got := table.Asked(c.id, c.stream); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.id, got, c.want)
		}
	}
	if left := len(table.watch.asked); left != 0 {
		t.Errorf("%d invocations are kept", left)
	}
}
