package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
)

// cooledDown delivers the request several times within the cooldown, and again
// after it.
func cooledDown(lock string) act {
	return func(ctx context.Context, st *stage) {
		var copies []<-chan attempts
		for range environments {
			copies = append(copies, st.begin(ctx, st.once, st.event, 0, nil))
		}
		ran := 0
		for _, results := range copies {
			switch got := <-results; got.String() {
			case st.answer:
				ran++
			case st.held:
			default:
				st.fail("at the same moment: %v", got)
			}
		}
		if ran != 1 {
			st.fail("at the same moment: %d of %d ran, want 1", ran, environments)
		}
		st.expect("within the minute", st.once(ctx, st.event), st.held)
		st.expect("another customer", st.once(ctx, st.edit("jane", "omar")), st.answer)
		st.expire(ctx, lock)
		st.expect("after the minute", st.once(ctx, st.event), st.answer)
		st.effects("jane", "omar", "jane")
	}
}

// delivered delivers the event once.
func delivered(ctx context.Context, st *stage) {
	st.expect("delivered", st.once(ctx, st.event), st.answer)
	st.effects(st.due()...)
}

// burstAtWork delivers more events for the same names while the first delivery
// is certainly at work: others edits the event to the n-th of them.
func burstAtWork(others func(n int) []string) act {
	return func(ctx context.Context, st *stage) {
		first := st.begin(ctx, st.once, st.event, max(st.locks, 1), func(_ string, nth int) bool { return nth == 2 })
		for n := range environments {
			st.expect("more while at work", st.once(ctx, st.edit(others(n)...)), ok)
		}
		st.open()
		st.expect("the first", <-first, ok)
		st.effects(append(st.due(), st.want...)...) // once more for all of them
	}
}

// olderUpload delivers an upload that is older than the one before it.
func olderUpload(ctx context.Context, st *stage) {
	st.expect("the newest", st.once(ctx, st.event), ok)
	st.expect("an older one", st.once(ctx, st.edit("0055AED6DCD90281E4", "0055AED6DCD90281E0")), ok)
	st.effects(st.due()...)
}

// noTable lets every request to the lock table fail.
func noTable(ctx context.Context, st *stage) {
	st.dynamo.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.DropBefore })
	st.expect("the lock table cannot be reached", st.once(ctx, st.event), ok)
	st.effects(st.due()...)
	if log := strings.Join(st.log, "\n"); !strings.Contains(log, `"Unlocked":1`) {
		st.fail("no metric says that a handler ran without a lock")
	}
}

// sequence edits the numbers of the burst's records to later ones.
func sequence(n int) []string {
	var edits []string
	for i := range 6 {
		edits = append(edits, fmt.Sprintf("6588%03d", i+1), fmt.Sprintf("6588%03d", 10*(n+1)+i+1))
	}
	return edits
}

var recipes = []example{
	{
		name: "cooldown", shows: "at most one link a minute for each customer, 429 meanwhile",
		messages: []string{"link sent"}, values: []string{"customer"}, want: []string{"jane"}, answer: "status 202", held: "status 429",
		only: []act{cooledDown("cooldown/jane")},
		wrong: []delivery{
			{"no customer", []string{`\"jane\"`, `\"\"`}, "status 400", nil},
			{"malformed JSON", []string{`{\"customer\": \"jane\"}`, "jane"}, "status 400", nil},
		},
		without: []protection{
			{"HoldAtLeast", []string{"middleware.HoldAtLeast(time.Minute)", "middleware.Remember(time.Minute)"}, cooledDown("cooldown/jane"), "within the minute: want status 429"},
		},
	},
	{
		name: "burst", shows: "all changes of a customer in a burst are one run, and those during it one more",
		messages: []string{"index rebuilt"}, values: []string{"customer"}, want: []string{"jane", "omar"}, answer: ok, held: ok, partial: true, locks: 2,
		only:  []act{delivered, burstAtWork(sequence)},
		wrong: []delivery{{"a change without customer", []string{"eyJjdXN0b21lciI6ICJvbWFyIn0=", "eyJjdXN0b21lciI6ICIifQ=="}, "back: …8003 …8005", []string{"jane"}}},
		without: []protection{
			{"OnlyLatest", []string{"middleware.OnlyLatest(), ", ""}, delivered, "6 pieces of work, want 2"},
		},
	},
	{
		name: "latest", shows: "one run for all changes that come while another one lasts",
		messages: []string{"prices published"}, values: []string{"shop"}, want: []string{"berlin"}, answer: ok, held: "HeldError",
		only:  []act{together, burstAtWork(func(n int) []string { return []string{"1f0e0001", fmt.Sprintf("1f0e1%03d", n)} })},
		wrong: []delivery{{"no shop", []string{`"berlin"`, `""`}, "NoKeyError", nil}},
		without: []protection{
			{"Latest", []string{"middleware.Latest(", "middleware.WithLock("}, burstAtWork(func(n int) []string { return []string{"1f0e0001", fmt.Sprintf("1f0e1%03d", n)} }), "more while at work: want ok, got"},
		},
	},
	{
		name: "thumbnail", shows: "the newest upload once, and without a lock if the table cannot be reached",
		messages: []string{"thumbnail made"}, values: []string{"sequencer"}, want: []string{"0055AED6DCD90281E4"}, answer: ok, held: "BatchError",
		others:  []delivery{{"another upload of the object", []string{"0055AED6DCD90281E4", "0055AED6DCD90281E6"}, "BatchError", []string{"0055AED6DCD90281E6"}}},
		special: []act{olderUpload, noTable},
		wrong:   []delivery{{"no bucket", []string{`"name": "pictures-example"`, `"name": ""`}, "BatchError", nil}},
		without: []protection{
			{"S3LatestRecord", []string{"keyfuncs.S3LatestRecord", "keyfuncs.S3Record"}, olderUpload, "2 pieces of work, want 1"},
			{"FailOpen", []string{"middleware.FailOpen(), ", ""}, noTable, "0 pieces of work, want 1"},
			{"Metrics", []string{", emf.Metrics(nil)", "", `"github.com/lambdalock/lambdalock/telemetry/emf"`, ""}, noTable, "no metric says"},
		},
	},
	{
		name: "stripe", shows: "each order is charged once, by an id that is the same in every try",
		messages: []string{paid}, values: []string{"order", "amount"}, want: []string{"o-17 4200"}, answer: ok, held: "BatchError", partial: true,
		others: []delivery{
			{"the same order in another message", []string{"9e400001", "9e400002"}, "BatchError", nil},
			{"another order", []string{"9e400001", "9e400003", "o-17", "o-18"}, ok, []string{"o-18 4200"}},
		},
		special: []act{killedAtWork("stripe/o-17")},
		wrong: []delivery{
			{"no order", []string{`\"o-17\"`, `\"\"`}, "BatchError", nil},
			{"no amount", []string{"4200", "0"}, "BatchError", nil},
		},
		without: []protection{
			{"the order's id", []string{`idFor("charge", lease.Key)`, "fmt.Sprint(lease.Fence)"}, killedAtWork("stripe/o-17"), "2 pieces of work, want 1"},
			{"Once", []string{"keyfuncs.Once(keyfuncs.ByField(func(o order) string { return o.ID }))", "keyfuncs.ByField(func(o order) string { return o.ID })"}, sentTwice, "2 pieces of work, want 1"},
		},
	},
}

// sentTwice delivers the order in two messages.
func sentTwice(ctx context.Context, st *stage) {
	st.expect("the order", st.once(ctx, st.event), st.answer)
	st.expect("the order, sent twice", st.once(ctx, st.edit("9e400001", "9e400002")), st.answer)
	st.effects(st.due()...)
}
