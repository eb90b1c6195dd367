package main

import "fmt"

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
		messages: []string{"thumbnail made"}, values: []string{"sequencer"}, want: []string{"0055AED6DCD90281F4"}, answer: ok, held: "BatchError",
		others:  []delivery{{"another upload of the object", []string{"0055AED6DCD90281F4", "0055AED6DCD90281F6"}, "BatchError", []string{"0055AED6DCD90281F6"}}},
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
			{"a debit that takes days", []string{"9e400001", "9e400004", "o-17", "o-19", "pm_17", "pm_debit"}, ok, []string{"o-19 4200"}},
		},
		special: []act{killedAtWork("stripe/o-17")},
		wrong: []delivery{
			{"no order", []string{`\"o-17\"`, `\"\"`}, "BatchError", nil},
			{"no amount", []string{"4200", "0"}, "BatchError", nil},
			{"a card that is declined", []string{"pm_17", "pm_declined"}, "BatchError", nil},
		},
		without: []protection{
			{"confirm", []string{`"confirm": {"true"}, `, ""}, delivered, "0 pieces of work, want 1"},
			{"the order's id", []string{`"%q %q %q", effect, k.Name, k.Event`, `"%q %q %d", effect, k.Name, lease.Fence`}, killedAtWork("stripe/o-17"), "2 pieces of work, want 1"},
			{"Once", []string{"keyfuncs.Once(keyfuncs.ByField(func(o order) string { return o.ID }))", "keyfuncs.ByField(func(o order) string { return o.ID })"}, sentTwice, "2 pieces of work, want 1"},
		},
	},
	{
		name: "quote", shows: "an offer is replayed for as long as it stands, and a refusal for a day",
		messages: []string{"stock checked"}, values: []string{"article"}, want: []string{"pen"}, answer: "status 201", held: "status 409",
		special: []act{offerStands, soldOut},
		wrong: []delivery{
			{"no Idempotency-Key", []string{"idempotency-key", "x-other"}, "status 400", nil},
			{"malformed JSON", []string{`{\"article\": \"pen\", \"quantity\": 7}`, "pen"}, "status 400", nil},
			{"no article", []string{"pen", ""}, "status 400", nil},
		},
		without: []protection{
			{"RememberFor", []string{", middleware.RememberFor(stands)", ""}, offerStands, "the offer stands for 24h"},
			{"CompletedIf", []string{", middleware.CompletedIf(final)", ""}, soldOut, "2 pieces of work, want 1"},
			{"PayloadFrom", []string{
				"keyfuncs.PayloadFrom(keyfuncs.IdempotencyKey[request], keyfuncs.Join(\n\t\tkeyfuncs.HTTPTarget[request], keyfuncs.HTTPBody[request](jmespath.Payload), keyfuncs.Caller[request]))", "keyfuncs.IdempotencyKey[request]",
				`"github.com/lambdalock/lambdalock/keyfuncs/jmespath"`, "",
			}, offerStands, "with its JSON written anew: want status 201"},
			{"HTTPTarget", []string{"keyfuncs.HTTPTarget[request], ", ""}, offerStands, "for another path: want status 422"},
		},
	},
	{
		name: "upload", shows: "a form's file once, however the browser sends it again; the page can read every answer",
		messages: []string{"file stored"}, values: []string{"name", "bytes"}, want: []string{"cat.txt 5"}, answer: "status 201", held: "status 409",
		special: []act{fromABrowser},
		wrong: []delivery{
			{"no Idempotency-Key", []string{"idempotency-key", "x-other"}, "status 400", nil},
			{"no form", []string{"multipart/form-data; boundary=----WebKitFormBoundaryQ7aPz", "text/plain"}, "status 400", nil},
			{"no file", []string{`; filename=\"cat.txt\"`, "", "c1b7f0e2", "c1b7f0e3"}, "status 400", nil},
		},
		without: []protection{
			{"SessionCookie", []string{`keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.SessionCookie[request]("session"))`, "keyfuncs.IdempotencyKey[request]"}, fromABrowser, "with another analytics cookie: want status 201"},
			{"withCORS around the lock", []string{"withCORS(middleware.WithLock(key, handle))", "middleware.WithLock(key, withCORS(handle))"}, fromABrowser, "another file with its key: the page cannot read the answer"},
			{"the lock", []string{"middleware.WithLock(key, handle)", "handle", "key :=", "_ =", `"github.com/lambdalock/lambdalock/middleware"`, ""}, together, "5 pieces of work, want 1"},
		},
	},
	{
		name: "poison", shows: "each reading once, in order; a malformed one is put aside, and the shard goes on",
		messages: []string{"reading stored", "reading put aside"}, values: []string{"sensor", "message"}, partial: true, answer: ok, held: "BatchError",
		want:  []string{"sensor/17 reading stored", "sensor/23 reading put aside", "sensor/17 reading stored", "sensor/17 reading stored"},
		only:  []act{delivered},
		wrong: []delivery{{"no sequence number", []string{"49590338271490256608559692538361571095921575989136588898", ""}, "BatchError", nil}},
		without: []protection{
			{"OnFailed", []string{", middleware.OnFailed(a.putAside)", ""}, delivered, "1 pieces of work, want 4"},
			{"Permanent", []string{"return middleware.Permanent(err)", "return err"}, delivered, "1 pieces of work, want 4"},
		},
	},
	{
		name: "outbox", shows: "each order once, with one message",
		messages: []string{"order saved"}, values: []string{"order"}, want: []string{"o-17"}, answer: ok, held: "BatchError", partial: true, locks: 1,
		others: []delivery{
			{"the same order in another message", []string{"a1500001", "a1500002"}, "BatchError", nil},
			{"another order", []string{"a1500001", "a1500003", "o-17", "o-18"}, ok, []string{"o-18"}},
		},
		special: []act{lostTransactions, savedOnce},
		wrong:   []delivery{{"no order", []string{`\"o-17\"`, `\"\"`}, "BatchError", nil}},
		without: []protection{
			{"Transact", []string{"dynamostore.Transact(ctx, b.client, ", "b.client.TransactWriteItems(ctx, ", `"github.com/lambdalock/lambdalock/stores/dynamostore"`, ""}, savedOnce, "3 items, want the order and its message"},
		},
	},
	{
		name: "bulk", shows: "a batch of 10,000, each message once, with few requests",
		messages: []string{"message handled"}, values: []string{"id"}, want: []string{"b2600001-2c77-4f0e-9d11-0f2d1c3b0000"}, answer: ok, held: "BatchError", partial: true,
		special: []act{largeBatch},
		wrong:   []delivery{{"no id", []string{"b2600001-2c77-4f0e-9d11-0f2d1c3b0000", ""}, "BatchError", nil}},
		without: []protection{
			{"batching", []string{"batching.Client(client)", "client", `"github.com/lambdalock/lambdalock/stores/dynamostore/batching"`, ""}, largeBatch, "requests to the lock table, want at most 500"},
		},
	},
	{
		name: "throttled", shows: "one call in ten seconds to a partner; the others come back in their turn",
		messages: []string{"partner called"}, values: []string{"order"}, want: []string{"1", "2", "3"}, answer: ok, held: "BatchError", partial: true,
		only:  []act{inTurn, neverAccepted},
		wrong: []delivery{{"no partner", []string{`\"acme\"`, `\"\"`}, "BatchError", nil}},
		without: []protection{
			{"redelivery", []string{
				",\n\t\tredelivery.SQS(sqs.NewFromConfig(cfg), &redelivery.Options{DeadLetterQueue: dead})", "", "cfg, err :=", "_, err :=",
				`"github.com/lambdalock/lambdalock/redelivery"`, "", `"github.com/aws/aws-sdk-go-v2/service/sqs"`, "",
			}, inTurn, "0 of 2 messages come back in a minute"},
			{"HoldAtLeast", []string{"middleware.HoldAtLeast(10*time.Second)", "middleware.Remember(time.Minute)"}, inTurn, "turn 1: 3 calls"},
			{"Permanent", []string{"middleware.Permanent(errors.New(\"the shipment has no order\"))", "errors.New(\"the shipment has no order\")"}, neverAccepted, "0 messages in the dead-letter queue, want 1"},
		},
	},
}
