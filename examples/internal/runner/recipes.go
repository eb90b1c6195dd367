package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
	st.expect("an older one", st.once(ctx, st.edit("0055AED6DCD90281F4", "0055AED6DCD90281F0")), ok)
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

// sentTwice delivers the order in two messages.
func sentTwice(ctx context.Context, st *stage) {
	st.expect("the order", st.once(ctx, st.event), st.answer)
	st.expect("the order, sent twice", st.once(ctx, st.edit("9e400001", "9e400002")), st.answer)
	st.effects(st.due()...)
}

// offerStands sends a request again with its JSON written anew, and once more
// when the offer has expired.
func offerStands(ctx context.Context, st *stage) {
	anew := st.edit(`{\"article\": \"pen\", \"quantity\": 7}`, `{\"quantity\":7,\"article\":\"pen\"}`)
	st.expect("an offer", st.once(ctx, st.event), "status 201")
	st.expect("with its JSON written anew", st.once(ctx, anew), "status 201")
	st.expect("for another path", st.once(ctx, st.edit(`"rawPath": "/offers"`, `"rawPath": "/orders"`)), "status 422")
	for key := range st.asked {
		completed, _ := st.dynamo.Item("locks", key)["completed"].(map[string]any)
		memory, _ := completed["M"].(map[string]any)
		for event, until := range memory {
			number, _ := until.(map[string]any)
			millis, err := strconv.ParseFloat(fmt.Sprint(number["N"]), 64) // what the decimals say does not matter
			if left := time.Until(time.UnixMilli(int64(millis))).Round(time.Minute); err != nil || left > 15*time.Minute {
				st.fail("the offer stands for %v, want 15m", left)
			}
			st.update(ctx, key, "SET completed = :past", &types.AttributeValueMemberM{
				Value: map[string]types.AttributeValue{event: &types.AttributeValueMemberN{Value: "1"}},
			})
		}
	}
	st.expect("when it has expired", st.once(ctx, anew), "status 201")
	st.effects("pen", "pen")
}

// soldOut asks twice for what there is not.
func soldOut(ctx context.Context, st *stage) {
	for range 2 {
		st.expect("sold out", st.once(ctx, st.edit(`\"quantity\": 7`, `\"quantity\": 700`)), "status 409")
	}
	st.effects("pen")
}

// fromABrowser sends what a browser does.
func fromABrowser(ctx context.Context, st *stage) {
	readable := func(what string, event []byte, want string) {
		got := st.once(ctx, event)
		if st.expect(what, got, want); !strings.Contains(string(got[0].Payload), `"Access-Control-Allow-Origin":"https://shop.example.com"`) {
			st.fail("%s: the page cannot read the answer: %.300s", what, got[0].Payload)
		}
	}
	readable("OPTIONS", st.edit(`"POST"`, `"OPTIONS"`, "idempotency-key", "x-other"), "status 204")
	readable("the form", st.event, "status 201")
	readable("the form again, with another boundary", st.edit("WebKitFormBoundaryQ7aPz", "WebKitFormBoundary9xRtB"), "status 201")
	readable("the form again, with another analytics cookie", st.edit("_ga=GA1.1.17", "_ga=GA1.1.18"), "status 201")
	readable("another file with its key", st.edit("a cat", "a dog"), "status 422")
	readable("another session with its key", st.edit("q8w7e6r5", "t4z3u2i1"), "status 422")
	st.effects(st.due()...)
}

// savedOnce kills the function when the order may have been saved, and delivers
// it again.
func savedOnce(ctx context.Context, st *stage) {
	st.killed(ctx, "outbox/o-17", 2)
	st.expect("after its death", st.once(ctx, st.event), st.answer)
	out, err := st.client.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("orders")})
	if st.must("scan the orders", err) && len(out.Items) != 2 {
		st.fail("%d items, want the order and its message", len(out.Items))
	}
}

// largeBatch delivers 2,000 messages, and the same once more. SQS makes batches
// of up to 10,000, which take a while.
func largeBatch(ctx context.Context, st *stage) {
	const size = 2_000
	var batch struct{ Records []json.RawMessage }
	st.must("parse the event", json.Unmarshal(st.event, &batch))
	for n := 1; n < size; n++ {
		batch.Records = append(batch.Records, bytes.Replace(batch.Records[0], []byte("1c3b0000"), fmt.Appendf(nil, "%08d", n), 1))
	}
	event, err := json.Marshal(batch)
	st.must("make a batch", err)
	for _, what := range []string{"2,000 messages", "the same once more"} {
		before := st.dynamo.Requests()
		st.expect(what, st.once(ctx, event), ok)
		n := st.dynamo.Requests() - before
		if st.Printf("%s: %d requests to the lock table", what, n); n > size/4 {
			st.fail("%s: %d requests to the lock table, want at most %d", what, n, size/4)
		}
	}
	st.end()
	if n := len(st.work()); n != size {
		st.fail("%d pieces of work, want %d", n, size)
	}
}

// inTurn delivers three shipments to one partner at the same moment, and what
// comes back of them when the partner may be called again.
func inTurn(ctx context.Context, st *stage) {
	event := st.event
	for turn := 1; event != nil && turn <= 3; turn++ {
		r := st.invoke(ctx, event)
		st.Printf("turn %d: %s", turn, label(r))
		before := event
		event = rest(event, r)
		if calls := bytes.Count(before, []byte("messageId")) - bytes.Count(event, []byte("messageId")); calls != 1 {
			st.fail("turn %d: %d calls, want 1", turn, calls)
		}
		st.mu.Lock()
		back := st.visible
		st.visible = nil
		st.mu.Unlock()
		if len(back) != 3-turn || len(back) > 0 && slices.Max(back) > time.Minute {
			st.fail("%d of %d messages come back in a minute, after %v", len(back), 3-turn, back)
		}
		st.expire(ctx, "throttled/acme")
	}
	st.effects(st.want...)
}

// neverAccepted delivers a shipment that the partner can never accept.
func neverAccepted(ctx context.Context, st *stage) {
	st.expect("a shipment without order", st.once(ctx, st.edit(`\"order\":1,`, "", `\"order\":2,`, "", `\"order\":3,`, "")), "back: …0002 …0003")
	if st.dead.Load() != 1 {
		st.fail("%d messages in the dead-letter queue, want 1", st.dead.Load())
	}
	st.effects()
}
