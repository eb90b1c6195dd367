package explore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/sim/explore"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestJudge compares the memory store with the rules on the rows and requests
// that the exploration reaches. LAMBDALOCK_DEPTH=long compares all pairs of
// them.
func TestJudge(t *testing.T) { // F1, F3, F4, F5, F21, F44
	t.Parallel()
	c, err := explore.Rows(false).Compare(t.Context(), memstore.New(), nil, explore.Share(19))
	t.Log(c)
	if err != nil {
		t.Error(err)
	}
}

// TestJudgeFinds lets the store break a rule in one corner.
func TestJudgeFinds(t *testing.T) {
	t.Parallel()
	rows := explore.Rows(false)
	for name, s := range map[string]explore.Store{
		"equal stamp": greedy{memstore.New()},
		"abandon":     &broken{Store: memstore.New(), keepsStamp: true},
		"release":     &broken{Store: memstore.New(), releasesAny: true},
		"memory":      &broken{Store: memstore.New(), forgets: true},
	} {
		if c, err := rows.Compare(t.Context(), s, nil, 1); err == nil {
			t.Errorf("%s: not found in %v", name, c)
		} else {
			t.Logf("%s: found after %d pairs: %v", name, c.Pairs, strings.SplitN(err.Error(), "\n", 2)[0])
		}
	}
}

// greedy takes a dead holder's row with an equal stamp.
type greedy struct{ *memstore.Store }

func (g greedy) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	row, ok, err := g.Store.Acquire(ctx, c)
	if ok || err != nil || row.Token == "" || row.Judge(c) != driver.Behind || !row.Stamp.Equal(c.Stamp) {
		return row, ok, err
	}
	later := *c
	later.Stamp = c.Stamp.Add(1000)
	return g.Store.Acquire(ctx, &later)
}
