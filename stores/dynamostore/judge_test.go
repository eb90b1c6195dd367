package dynamostore_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/sim/explore"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestJudge compares the conditions with [driver.Row.Judge] and the rules of
// renewal and release, on the rows and requests that the exploration of the
// protocol reaches. LAMBDALOCK_DEPTH=long compares all pairs of them.
func TestJudge(t *testing.T) { // F1, F3, F4, F5, F21, F44
	t.Parallel()
	client := clientOf(fakedynamo.New())
	if err := dynamostore.EnsureTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	c, err := explore.Rows(false).Compare(t.Context(), dynamostore.New(client, table), nil, explore.Share(83))
	t.Log(c)
	if err != nil {
		t.Error(err)
	}
}
