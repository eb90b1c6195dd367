package localtable

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestClaims: what an invocation got is known from its requests.
func TestClaims(t *testing.T) {
	t.Parallel()
	table := expect.Value(Start(t.Context(), "locks"))(t)
	t.Cleanup(table.Close)
	store := dynamostore.New(table.Client, "locks")
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
		name, id, stream string
		want             Claims
	}{
		{"acquired", "1", "s1", Claims{Acquired: 1}},
		{"refused, asked again", "2", "s2", Claims{Acquired: 1, Refused: 1, Waited: true}},
		{"counted already", "2", "s2", Claims{}},
		{"known by its log stream", "3", "s3", Claims{Acquired: 1}},
		{"without claims", "4", "s4", Claims{}},
		{"two events of one name", "5", "s5", Claims{Acquired: 1, Refused: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := table.Claims(c.id, c.stream); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	if left := len(table.claims.of); left != 0 {
		t.Errorf("%d invocations are kept", left)
	}
}
