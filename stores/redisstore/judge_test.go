package redisstore_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/internal/sim/explore"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

// TestJudge compares the scripts with [driver.Row.Judge] and the rules of
// renewal and release, on the rows and requests that the exploration of the
// protocol reaches. LAMBDALOCK_DEPTH=long compares all pairs of them.
func TestJudge(t *testing.T) { // F1, F3, F4, F5, F21, F44
	t.Parallel()
	mini := newMini(t)
	c, err := explore.Rows(true).Compare(t.Context(), must(redisstore.New(newClient(t, mini.Addr()))), mini.SetTime, explore.Share(127))
	t.Log(c)
	if err != nil {
		t.Error(err)
	}
}
