package invocation_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

// pace is a Pace with its own clock.
type pace struct {
	invocation.Pace
	now time.Time
}

func newPace() *pace {
	return &pace{invocation.Pace{Chance: rand.NewPCG(0, 0)}, time.Unix(1e9, 0)}
}

// throttled and taken note a request that was sent a millisecond ago.
func (p *pace) throttled() {
	p.now = p.now.Add(time.Millisecond)
	p.Throttled(p.now, p.now)
}

func (p *pace) taken() {
	p.now = p.now.Add(time.Millisecond)
	p.Taken(p.now)
}

// gap returns the average gap before the next claims.
func (p *pace) gap() time.Duration {
	const claims = 2000
	began := p.now
	for begun, asked := 0, 0; begun < claims && asked < 10*claims; asked++ {
		wait := p.Next(p.now)
		p.now = p.now.Add(wait)
		if wait == 0 {
			begun++
		}
	}
	return p.now.Sub(began) / claims
}

func (p *pace) wantGap(t *testing.T, when string, want time.Duration) {
	t.Helper()
	if got := p.gap(); got < want*9/10 || got > want*11/10 {
		t.Errorf("%s the gap is %v, want about %v", when, got, want)
	}
}

func TestPace(t *testing.T) { // F63
	t.Parallel()
	p := newPace()
	p.taken()
	p.wantGap(t, "as long as nothing is throttled", 0)

	sent := p.now
	p.throttled()
	p.wantGap(t, "after a throttled request", 200*time.Millisecond)
	for range 100 {
		p.Throttled(sent, p.now)
		p.Taken(sent)
	}
	if full := p.Full(p.now.Add(time.Hour)); full != 0 {
		t.Errorf("the store takes nothing for %v, although it took a request that was under way", full)
	}
	p.wantGap(t, "after the others that were under way", 200*time.Millisecond)
	p.throttled()
	p.wantGap(t, "after the next one", 400*time.Millisecond)
	for range 10 {
		p.throttled()
	}
	p.wantGap(t, "at most", 2*time.Second)

	p = newPace()
	p.throttled()
	for range 14 {
		p.taken()
	}
	p.wantGap(t, "above the safe gap, after 14 requests", 8800*time.Microsecond)
	p.taken()
	p.wantGap(t, "below it, after one more", 8650*time.Microsecond)
	for range 50_000 {
		p.taken()
	}
	p.wantGap(t, "after many", 0)
}

// TestPaceAfterOutage shows that a store that took nothing for long is asked
// again soon.
func TestPaceAfterOutage(t *testing.T) { // F63
	t.Parallel()
	p := newPace()
	for range 10 {
		p.throttled()
		p.now = p.now.Add(time.Second)
	}
	if full := p.Full(p.now); full < 9*time.Second || full > 11*time.Second {
		t.Errorf("the store takes nothing for %v, want 10 s", full)
	}
	p.taken()
	p.wantGap(t, "after an outage", 160*time.Millisecond)
	if full := p.Full(p.now); full != 0 {
		t.Errorf("the store takes nothing for %v, although it does", full)
	}
}

// TestCompletionsSlowClaims shows that claims keep the longest gap while a
// completion is throttled, and that requests without a batch have no pace.
func TestCompletionsSlowClaims(t *testing.T) { // F55, F63
	t.Parallel()
	p := newPace()
	one, two := p.Stuck(), p.Stuck()
	one()
	p.wantGap(t, "while a completion is throttled", 2*time.Second)
	two()
	p.wantGap(t, "afterwards", 0)
	var none *invocation.Pace
	none.Throttled(p.now, p.now)
	none.Taken(p.now)
	none.Stuck()()
}

// TestBegunFirst shows that a record has begun when its work first did, and not
// when Latest ran it once more: its name cools down from then on.
func TestBegunFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &invocation.RecordClaim{}
		ctx, began := invocation.WithRecordClaim(t.Context(), c), time.Now()
		for range 2 {
			invocation.Begun(ctx)
			time.Sleep(time.Second)
		}
		if !c.Began.Equal(began) {
			t.Errorf("it began %v later", c.Began.Sub(began))
		}
	})
}
