package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

const (
	environments = 4
	patience     = 20 * time.Second // how long an act may take
	scale        = 600              // shortens the waits before retries: 1 min becomes 0.1 s
)

// attempts holds the result of every attempt to deliver an event, at least one.
type attempts []locallambda.Result

// String joins the labels.
func (a attempts) String() string {
	var labels []string
	for _, r := range a {
		labels = append(labels, label(r))
	}
	return strings.Join(labels, ", ")
}

var (
	status = regexp.MustCompile(`^{"statusCode":([1-9]\d*)`)            // of an HTTP response
	back   = regexp.MustCompile(`"itemIdentifier":"([^"]*?([^"]{4}))"`) // a record of a partial answer
)

// label returns in a word or two how an invocation ended: the type of its
// error, the status of its HTTP response, the records of its partial answer, or
// ok.
func label(r locallambda.Result) string {
	text := ok
	if m := status.FindSubmatch(r.Payload); m != nil {
		text = fmt.Sprintf("status %s", m[1])
	}
	for i, m := range back.FindAllSubmatch(r.Payload, -1) {
		if i == 0 {
			text = "back:"
		}
		text += fmt.Sprintf(" …%s", m[2])
	}
	if r.Outcome != locallambda.Succeeded {
		text = r.ErrorType
	}
	return text
}

// rest returns what the source of a batch delivers again. It returns nil if no
// record failed.
func rest(batch []byte, r locallambda.Result) []byte {
	if r.Outcome != locallambda.Succeeded {
		return batch
	}
	var b struct{ Records []json.RawMessage }
	if json.Unmarshal(batch, &b) != nil || len(b.Records) == 0 {
		return nil
	}
	id := func(record json.RawMessage) string { return eventsource.Identify(record).ID }
	b.Records = eventsource.Failed(eventsource.Identify(b.Records[0]).Source, b.Records, id, r.Payload)
	if len(b.Records) == 0 {
		return nil
	}
	event, _ := json.Marshal(b) // it was JSON before
	return event
}

// once delivers an event without retries.
func (st *stage) once(ctx context.Context, event []byte) attempts {
	return st.deliver(ctx, event, func() attempts { return attempts{st.invoke(ctx, event)} })
}

// retried delivers an event as its source does, which retries what failed.
func (st *stage) retried(ctx context.Context, event []byte) attempts {
	return st.deliver(ctx, event, func() attempts {
		if st.partial {
			return st.deliverBatch(ctx, event)
		}
		return st.functions[len(st.functions)-1].Deliver(ctx, event, locallambda.Redelivery{Scale: scale})
	})
}

// deliver gives an event to the function as its source does, and notes the
// answers.
func (st *stage) deliver(ctx context.Context, event []byte, source func() attempts) attempts {
	results := source()
	if ctx.Err() != nil {
		results = append(results, locallambda.Result{Outcome: locallambda.Failed, ErrorType: "no answer in time"})
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, r := range results {
		if label(r) == st.answer && bytes.Equal(event, st.event) {
			st.answers = append(st.answers, string(r.Payload))
		}
	}
	return results
}

// deliverBatch delivers a batch, and then what failed of it, until the rest is
// what should fail.
func (st *stage) deliverBatch(ctx context.Context, event []byte) attempts {
	var results attempts
	for event != nil && len(results) < eventsource.MaxReceiveCount && ctx.Err() == nil {
		r := st.invoke(ctx, event)
		results = append(results, r)
		if label(r) == st.answer {
			break
		}
		event = rest(event, r)
		time.Sleep(time.Minute / scale)
	}
	return results
}

// invoke invokes the function once.
func (st *stage) invoke(ctx context.Context, event []byte) locallambda.Result {
	r, err := st.functions[len(st.functions)-1].Attempt(ctx, locallambda.Invocation{Payload: event})
	if err != nil {
		return locallambda.Result{Outcome: locallambda.Failed, ErrorType: err.Error()}
	}
	return r
}

// begin delivers in the background. It returns when n requests that holds
// accepts wait at the gate. The channel receives the attempts.
func (st *stage) begin(ctx context.Context, deliver func(context.Context, []byte) attempts, event []byte, n int, holds func(key string, nth int) bool) <-chan attempts {
	st.hold(holds)
	defer st.hold(nil)
	results := make(chan attempts, 1)
	st.wg.Go(func() { results <- deliver(ctx, event) })
	for range n {
		select {
		case <-st.waiting:
		case r := <-results:
			st.fail("a delivery ended before the gate held back %d requests: %v", n, r)
			results <- r
			return results
		}
	}
	return results
}

// expect compares the labels of a delivery's attempts.
func (st *stage) expect(what string, got attempts, want string) {
	st.Printf("%s: %v", what, got)
	if got.String() != want {
		st.fail("%s: want %s, got %.300s", what, want, got[len(got)-1].Payload)
	}
}

// edit replaces parts of the event: of each pair the first by the second.
func (st *stage) edit(pairs ...string) []byte {
	return []byte(strings.NewReplacer(pairs...).Replace(string(st.event)))
}

// gate holds back DynamoDB requests, as a slow network does. A function whose
// request waits is at work until the gate opens.
type gate struct {
	mu      sync.Mutex
	asked   map[string]int // number of requests by partition key
	holds   func(key string, nth int) bool
	waiting chan struct{} // receives once for each request that waits
	opened  chan struct{}
	open    func()
}

// hold sets which of the coming requests wait until the gate opens; nil means
// none. A key's requests are counted from 1.
func (g *gate) hold(which func(key string, nth int) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = which
}

// pass is the hook of the DynamoDB endpoint, which calls it before it applies a
// request.
func (g *gate) pass(r fakedynamo.Request) fakedynamo.Fault {
	g.mu.Lock()
	waits := false
	for _, key := range append(r.Keys, r.Key) { // of a transaction, or of one item
		g.asked[key]++
		waits = waits || g.holds != nil && g.holds(key, g.asked[key])
	}
	g.mu.Unlock()
	if waits {
		g.waiting <- struct{}{}
		<-g.opened
	}
	return fakedynamo.None
}
