package main

import "slices"

// example is one folder, what is delivered to it and what it promises.
type example struct {
	name, shows string
	messages    []string // what the functions log about their work, or put
	values      []string // the attributes that tell one piece of work from another
	want        []string // the values of the event's work, however often it is delivered
	turns       bool     // there are no duplicates: each delivery with that answer does the work
	answer      string   // the label of the answer, to duplicates too
	held        string   // the label for a duplicate while the first delivery is at work, or waits
	partial     bool     // the source understands partial answers
	locks       int      // how many locks the event holds at the same time; zero means 1

	balances map[string]int64 // of the accounts at first; each piece of work moves an amount: id, from, to, amount

	others  []delivery // each arrives while the first delivery is at work
	special []act
	only    []act      // if set, the only acts, because events differ from each other
	wrong   []delivery // wrong input
	without []protection
}

// delivery is an event that differs from event.json, and what it should cause.
type delivery struct {
	what   string
	edits  []string // pairs: what to replace, and by what
	answer string   // its label, or waits
	work   []string // the values of its work
}

const (
	ok    = "ok"    // the label of a success that says no more
	waits = "waits" // instead of a label: it waits until the first delivery releases the lock
	paid  = "paid"  // instead of a log message: the bank took a payment
	put   = "put"   // instead of a log message: an object was written to S3

	account = "DE-4711"                  // in fenced/event.json
	upload  = "holiday 2026/a+b&c é.jpg" // decoded from s3upload/event.json
	sent    = "holiday+2026/a%2Bb%26c+%C3%A9.jpg"
	checked = "/pictures-example/results/" + upload +
		`.json {"key":"holiday 2026/a+b\u0026c é.jpg","size":1024,"sha256":"93366be7d82bc02902080e076bfa8b46d7481895084abbbf0fae381bbffbc287"}`
)

// examples are all of them.
var examples = slices.Concat(sources, recipes)

var sources = []example{
	{
		name: "s3upload", shows: "each upload is checked once",
		messages: []string{put}, values: []string{"path", "body"}, want: []string{checked}, answer: ok, held: "HeldError",
		others: []delivery{{"another upload of the object", []string{"0055AED6DCD90281F4", "0055AED6DCD90281F6"}, "HeldError", []string{checked}}},
		wrong: []delivery{
			{"no such object", []string{"holiday+2026", "holiday+2027"}, "wrapError", nil},
			{"one of its own results", []string{"holiday+2026", "results/holiday+2026"}, ok, nil},
			{"no bucket", []string{`"name": "pictures-example"`, `"name": ""`}, "NoKeyError", nil},
		},
	},
	{
		name: "nothingtodo", shows: "each upload once; a duplicate logs that there is nothing to do",
		messages: []string{"upload handled"}, values: []string{"key", "size"}, want: []string{sent + " 1024"}, answer: ok, held: "HeldError",
		others:  []delivery{{"another upload of the object", []string{"0055AED6DCD90281F4", "0055AED6DCD90281F6"}, "HeldError", []string{sent + " 1024"}}},
		special: []act{nothingToDo},
		wrong:   []delivery{{"no bucket", []string{`"name": "pictures-example"`, `"name": ""`}, "NoKeyError", nil}},
	},
	{
		name: "sqsorders", shows: "each order once, one per customer at a time; a malformed one comes back alone",
		messages: []string{"order accepted"}, values: []string{"order"}, want: []string{"1017", "1018", "1020"},
		answer: "back: …bad0", held: "BatchError", partial: true, locks: 2,
		others: []delivery{{"another order of the customer", []string{"be6da", "be6db", "1017", "1021"}, "BatchError", []string{"1021"}}},
		wrong:  []delivery{{"an order without customer", []string{`\"customer\":\"omar\"`, `\"customer\":\"\"`}, "back: …0a17 …bad0", []string{"1017", "1020"}}},
	},
	{
		name: "fifocustomer", shows: "a customer's changes once and in order",
		messages: []string{"change applied"}, values: []string{"customer", "change"}, partial: true, locks: 2,
		want: []string{"customer/jane 1", "customer/omar 2", "customer/jane 3", "customer/jane 4"}, answer: ok, held: "BatchError",
		others: []delivery{{"the customer's next change", []string{"1c0001", "1c0005", `\"change\":1`, `\"change\":5`, "18894012345678901120", "18894012345678902144"}, "BatchError", []string{"customer/jane 5"}}},
		wrong:  []delivery{{"a change that fails stops its customer", []string{`\"field\":\"street\"`, `\"field\":\"\"`}, "back: …0003 …0004", []string{"customer/jane 1", "customer/omar 2"}}},
	},
	{
		name: "debounce", shows: "one run for all changes of a customer in a minute, and none is lost",
		messages: []string{"index rebuilt"}, values: []string{"customer"}, want: []string{"jane", "omar"}, answer: ok, held: "BatchError", partial: true,
		only: []act{changesWithinAMinute},
		without: []protection{
			{"OnlyLatest", []string{"middleware.OnlyLatest(), ", ""}, changesWithinAMinute, "more after the minute: want ok, got {\"batchItemFailures\""},
			{"HoldAtLeast", []string{"middleware.HoldAtLeast(time.Minute)", "middleware.Remember(time.Minute)"}, changesWithinAMinute, "more within the minute: want BatchError"},
		},
		wrong: []delivery{{"a change without customer", []string{`\"customer\":\"omar\"`, `\"customer\":\"\"`}, "back: …0002", []string{"jane"}}},
	},
	{
		name: "schedule", shows: "one report for each time",
		messages: []string{"report built"}, values: []string{"day"}, want: []string{"2026-11-20"}, answer: ok, held: ok,
		wrong: []delivery{{"an event without schedule", []string{"arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly", ""}, "NoKeyError", nil}},
	},
	{
		name: "api", shows: "one payment for each Idempotency-Key, its answer replayed, 409 while in progress",
		messages: []string{"customer charged"}, values: []string{"order"}, want: []string{"9007199254740993"}, answer: "status 201", held: "status 409",
		special: []act{reusedKey},
		wrong: []delivery{
			{"no Idempotency-Key", []string{"idempotency-key", "x-other"}, "status 400", nil},
			{"malformed body in base64", []string{`{\"order\": 9007199254740993}`, "b3JkZXI=", `"isBase64Encoded": false`, `"isBase64Encoded": true`}, "status 400", nil},
		},
		without: []protection{
			{"the lock", []string{
				"middleware.WithLock(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], handle)", "handle",
				`"github.com/lambdalock/lambdalock/keyfuncs"`, "", `"github.com/lambdalock/lambdalock/middleware"`, "",
			}, together, "5 pieces of work, want 1"},
		},
	},
	{
		name: "kinesis", shows: "each reading once, in order",
		messages: []string{"reading stored"}, values: []string{"sensor", "reading"}, partial: true,
		want: []string{"sensor/17 1", "sensor/23 2", "sensor/17 3", "sensor/17 4"}, answer: ok, held: "BatchError",
		wrong: []delivery{{"malformed JSON stops the shard", []string{"eyJyZWFkaW5nIjogMiwg", "eyJyZWFkaW5nIjogMiws"}, "back: …8914 …8930 …8946", []string{"sensor/17 1"}}},
	},
	{
		name: "snsfanout", shows: "each subscriber handles each message once",
		messages: []string{"customer notified"}, values: []string{"order", "subscriber"}, want: []string{"17 snsfanout"}, answer: ok, held: "BatchError",
		special: []act{twoSubscribers},
		wrong:   []delivery{{"a malformed message", []string{`{\"order\":17}`, `order 17`}, "BatchError", nil}},
	},
	{
		name: "mutex", shows: "one at a time on an instance, and every caller gets a turn",
		messages: []string{"maintenance begun", "maintenance done"}, values: []string{"message", "instance"}, turns: true,
		want: []string{"maintenance begun i-0a1b2c3d4e5f60718", "maintenance done i-0a1b2c3d4e5f60718"}, answer: ok, held: waits,
		others: []delivery{{"another instance", []string{"i-0a1b2c3d4e5f60718", "i-1"}, ok, slices.Repeat([]string{"maintenance begun i-1", "maintenance done i-1"}, 3)}},
		wrong:  []delivery{{"no instance", []string{"i-0a1b2c3d4e5f60718", ""}, "NoKeyError", nil}, {"no action", []string{"patch", ""}, "errorString", nil}},
	},
	{
		name: "fenced", shows: "a late write is refused, its retry skipped",
		messages: []string{put}, values: []string{"path"}, want: []string{"/archive-example/accounts/DE-4711/17.json", "map[account:map[S:DE-4711] balance:map[N:1042.5] fence:map[N:archived]]"},
		answer: ok, held: "HeldError",
		special: []act{lateWriter},
		wrong: []delivery{
			{"no account", []string{`"DE-4711"`, `""`}, "NoKeyError", nil},
			{"no statement", []string{`"statement": 17`, `"statement": 0`}, "NoKeyError", nil},
			{"no balance", []string{`"balance": "1042.50"`, `"total": 0`}, "errorString", nil},
		},
	},
	{
		name: "transfer", shows: "each transfer once: balances and event in one transaction",
		messages: []string{"transfer made"}, values: []string{"transfer", "from", "to", "amount"}, want: []string{"t-17 jane omar 2000", "t-18 omar lee 550"},
		answer: ok, held: "BatchError", partial: true, locks: 2, balances: map[string]int64{"jane": 10000, "omar": 10000, "lee": 0},
		others: []delivery{
			{"the same transfers in other messages", []string{"2e1424d4", "2e1424d5", "5b6f3c6e", "5b6f3c6f"}, "BatchError", nil},
			{"other transfers between the accounts", []string{"t-17", "t-27", "t-18", "t-28"}, ok, []string{"t-27 jane omar 2000", "t-28 omar lee 550"}},
		},
		special: []act{lostTransactions, killedTransfer},
		wrong: []delivery{
			{"more than there is", []string{`\"amount\":2000`, `\"amount\":10001`, "t-18", "t-38", "t-17", "t-37", `\"amount\":550`, `\"amount\":999`}, ok, []string{"t-38 omar lee 999"}},
			{"an unknown account", []string{`\"from\":\"omar\"`, `\"from\":\"nobody\"`, "t-18", "t-48", "t-17", "t-47"}, ok, []string{"t-47 jane omar 2000"}},
			{"no amount", []string{`\"amount\":550`, `\"amount\":0`, "t-17", "t-57"}, "back: …0b18", []string{"t-57 jane omar 2000"}},
			{"no id", []string{`\"t-18\"`, `\"\"`, "t-17", "t-67"}, "back: …0b18", []string{"t-67 jane omar 2000"}},
		},
		without: []protection{
			{"Transact", []string{"dynamostore.Transact(ctx, b.client, ", "b.client.TransactWriteItems(ctx, ", `"github.com/lambdalock/lambdalock/stores/dynamostore"`, ""}, killedTransfer, "the balance of jane is"},
		},
	},
	{
		name: "email", shows: "each confirmation at most once, whenever the function dies",
		messages: []string{"mail sent"}, values: []string{"order"}, want: []string{"o-17"}, answer: ok, held: "BatchError", partial: true,
		others:  []delivery{{"another order", []string{"7c2e0001", "7c2e0002", "o-17", "o-18"}, ok, []string{"o-18"}}},
		special: []act{killedAtWork("email/confirmation/o-17"), killedBeforeWork("email/confirmation/o-17", nil)},
		wrong: []delivery{
			{"no order", []string{`\"o-17\"`, `\"\"`}, "BatchError", nil},
			{"no address", []string{"jane@example.com", ""}, "BatchError", nil},
		},
		without: []protection{
			{"OnInterrupted(Skip)", []string{", middleware.OnInterrupted(middleware.Skip)", ""}, killedAtWork("email/confirmation/o-17"), "2 pieces of work, want 1"},
		},
	},
	{
		name: "payment", shows: "each invoice is paid exactly once, because the bank is asked",
		messages: []string{paid}, values: []string{"invoice", "amount"}, want: []string{"i-17 4200"}, answer: ok, held: "BatchError", partial: true,
		others:  []delivery{{"another invoice", []string{"8d3f0001", "8d3f0002", "i-17", "i-18"}, ok, []string{"i-18 4200"}}},
		special: []act{killedAtWork("payment/invoice/i-17"), killedBeforeWork("payment/invoice/i-17", []string{"i-17 4200"}), lostPayment},
		wrong: []delivery{
			{"no invoice", []string{`\"i-17\"`, `\"\"`}, "BatchError", nil},
			{"more than there is", []string{"4200", "1000000"}, "BatchError", nil},
		},
		without: []protection{
			{"OnInterrupted(Ask)", []string{", middleware.OnInterrupted(middleware.Ask(b.paid))", ""}, killedAtWork("payment/invoice/i-17"), "2 pieces of work, want 1"},
			{"Unknown", []string{"middleware.Unknown(fmt.Errorf(\"pay invoice %s: %w\", i.ID, err))", "err"}, lostPayment, "2 pieces of work, want 1"},
		},
	},
	{
		name: "durablestart", shows: "each order starts one execution",
		messages: []string{"execution started"}, values: []string{"order"}, want: []string{"o-17"}, answer: ok, held: "BatchError", partial: true,
		others: []delivery{
			{"the same order in another message", []string{"2e1424d4", "2e1424d5"}, "BatchError", nil},
			{"another order", []string{"2e1424d4", "2e1424d6", "o-17", "o-18"}, ok, []string{"o-18"}},
		},
		wrong: []delivery{{"no order", []string{`\"o-17\"`, `\"\"`}, "BatchError", nil}},
	},
	{
		name: "nested", shows: "each event once, one per customer at a time",
		messages: []string{"order booked"}, values: []string{"order"}, want: []string{"17"}, answer: ok, held: "HeldError",
		others: []delivery{{"another order of the customer", []string{"6a7e8feb", "7b8f9afc", `"order": 17`, `"order": 18`}, waits, []string{"18"}}},
		wrong:  []delivery{{"no customer", []string{`"jane"`, `""`}, "NoKeyError", nil}, {"no id", []string{"6a7e8feb-b491-4cf7-a9f1-bf3703467718", ""}, "NoKeyError", nil}},
	},
	{
		name: "several", shows: "each move once, never two at a time of a warehouse, and none waits for one that waits for it",
		messages: []string{"stock moved"}, values: []string{"from", "to", "boxes"}, want: []string{"berlin lyon 40"}, answer: ok, held: waits,
		others: []delivery{
			{"the move back", []string{"3b9c7d51", "4c0d8e62", `"from": "berlin"`, `"from": "lyon"`, `"to": "lyon"`, `"to": "berlin"`}, waits, []string{"lyon berlin 40"}},
			{"a move between other warehouses", []string{"3b9c7d51", "5d1e9f73", `"berlin"`, `"oslo"`, `"lyon"`, `"rome"`}, ok, []string{"oslo rome 40"}},
		},
		special: []act{oppositeMoves},
		wrong: []delivery{
			{"no warehouse", []string{`"lyon"`, `""`}, "NoKeyError", nil},
			{"a warehouse that is a number", []string{`"berlin"`, `7`}, "NoKeyError", nil},
		},
	},
	{
		name: "limit", shows: "each shipment once, three calls to a partner at a time, the fourth waits",
		messages: []string{"partner called"}, values: []string{"order"}, want: []string{"17"}, answer: ok, held: "HeldError",
		others:  []delivery{{"another shipment", []string{"8c1f6a52", "9d2a7b63", `"order": 17`, `"order": 18`}, ok, []string{"18"}}},
		special: []act{fourthCall},
		wrong: []delivery{
			{"no partner", []string{`"acme"`, `""`}, "NoKeyError", nil},
			{"not a shipment", []string{`"order": 17`, `"order": true`}, "NoKeyError", nil},
		},
		without: []protection{
			{"the limit of 3", []string{"middleware.WithLimit(partnerOf, 3,", "middleware.WithLimit(partnerOf, 4,"}, fourthCall, "a delivery ended before the gate held back"},
		},
	},
	{
		name: "urlstream", shows: "one export at a time, 409 until its last byte",
		messages: []string{"export begun", "export done"}, values: []string{"message", "rows"}, turns: true,
		want: []string{"export begun 1000", "export done 1000"}, answer: "status 200", held: "status 409",
		special: []act{slowClient},
		wrong: []delivery{
			{"rows is not a number", []string{`"rows": "1000"`, `"rows": "all"`}, "status 400", nil},
			{"not a Function URL's event", []string{`"rawPath": "/exports/orders.csv"`, `"rawPath": ""`}, "NoKeyError", nil},
		},
	},
	{
		name: "unittest", shows: "one receipt for each order",
		messages: []string{"receipt sent"}, values: []string{"order"}, want: []string{"17"}, answer: ok, held: "HeldError",
		wrong: []delivery{{"no customer", []string{`"jane"`, `""`}, "errorString", nil}},
		without: []protection{
			{"the event's id", []string{
				"middleware.RecordKey[receipt](keyfuncs.EventBridgeEvent)", "keyfuncs.ByField(func(receipt) string { return rand.Text() })", `"errors"`, `"crypto/rand"; "errors"`,
			}, together, "5 pieces of work, want 1"},
		},
	},
}
