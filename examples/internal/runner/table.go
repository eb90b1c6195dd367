package main

import (
	"context"
	"slices"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// example is one folder, what to send to it and what to expect.
type example struct {
	name  string
	shows string
	async bool // delivered as an asynchronous source does

	prepare func(context.Context, *world) error
	effect  func(*journal) []string // what the functions did
	want    []string                // what they should do, however often the event comes
	ordered bool                    // in this order, of effects with the same first word
	turns   bool                    // there is no event: want for every answer like first

	first, held, later string // labels of the answers
	partial            bool   // the source takes partial answers
	poison             string // what they always hold
	replayed           bool   // later answers are those of the first
	holds              int    // locks that the event holds at a time; zero means 1
	again              func([]byte, locallambda.Result) []byte

	alone  bool // only the acts that follow
	acts   []act
	wrong  []mistake
	verify func(context.Context, *stage) error
}

// expected is what should have been done when those were the answers.
func (x example) expected(results []locallambda.Result) []string {
	if !x.turns {
		return x.want
	}
	served := slices.DeleteFunc(slices.Clone(results), func(r locallambda.Result) bool { return label(r) != x.first })
	return slices.Repeat(x.want, len(served))
}

const done = "done"

var examples = complete([]example{
	{
		name: "s3upload", shows: "each upload is checked once", async: true,
		prepare: putUpload, effect: written, want: []string{"/" + pictures + "/" + uploadResult}, verify: verifyUpload,
		first: done, held: "HeldError", later: done,
		acts: []act{{"another upload of the object", busy(swap("0055AED6DCD90281E5", "0055AED6DCD90281E6"),
			"HeldError", "/"+pictures+"/"+uploadResult)}},
		wrong: []mistake{
			{"no such object", "holiday+2026", "holiday+2027", "wrapError", nil},
			{"a result of its own", "holiday+2026", "results/holiday+2026", done, nil},
			{"no bucket", `"name": "pictures-example"`, `"name": ""`, "KeyError", nil},
		},
	},
	{
		name: "sqsorders", shows: "each order once, one of a customer at a time; a malformed one comes back alone",
		effect: logged("order accepted", "order"), want: []string{"1017", "1018", "1020"},
		partial: true, poison: "…bad0", again: sqsAgain, holds: 2,
		first: "back: …bad0", held: "BatchError", later: "back: …bad0",
		acts:  []act{{"another order of the customer", busy(swapFirst("be6da", "be6db", "1017", "1021"), "BatchError", "1021")}},
		wrong: []mistake{{"an order without customer", `\"customer\":\"omar\"`, `\"customer\":\"\"`, "back: …0a17 …bad0", []string{"1017", "1020"}}},
	},
	{
		name: "fifocustomer", shows: "changes of a customer once and in order",
		effect: logged("change applied", "customer", "change"), ordered: true,
		want:    []string{"customer/jane 1", "customer/omar 2", "customer/jane 3", "customer/jane 4"},
		partial: true, again: sqsAgain, holds: 2,
		first: done, held: "BatchError", later: done,
		acts: []act{{"the next change of the customer", busy(swapFirst("1c0001", "1c0005", `\"change\":1`, `\"change\":5`, "18894012345678901120", "18894012345678902144"),
			"BatchError", "customer/jane 5")}},
		wrong: []mistake{{"a change that fails stops its customer", `\"field\":\"street\"`, `\"field\":\"\"`, "back: …0003 …0004", []string{"customer/jane 1", "customer/omar 2"}}},
	},
	{
		name: "schedule", shows: "one report for each time", async: true,
		effect: logged("report built", "day"), want: []string{"2026-11-20"},
		first: done, held: done, later: done,
		wrong: []mistake{{"an event without schedule", "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly", "", "KeyError", nil}},
	},
	{
		name: "api", shows: "one payment for each Idempotency-Key, the first answer again, 409 while at work",
		effect: logged("customer charged", "order"), want: []string{"9007199254740993"},
		first: "status 201", held: "status 409", later: "status 201", replayed: true,
		wrong: []mistake{
			{"no Idempotency-Key", "idempotency-key", "x-other", "status 400", nil},
			{"malformed body", "eyJvcmRlciI6IDkwMDcxOTkyNTQ3NDA5OTN9", "b3JkZXI=", "status 400", nil},
		},
	},
	{
		name: "kinesis", shows: "each reading once, in order",
		effect: logged("reading stored", "sensor", "reading"), ordered: true,
		want:    []string{"sensor/17 1", "sensor/23 2", "sensor/17 3", "sensor/17 4"},
		partial: true, again: shardAgain,
		first: done, held: "BatchError", later: done,
		wrong: []mistake{{"a reading that is no JSON stops its shard", "eyJyZWFkaW5nIjogMiwg", "eyJyZWFkaW5nIjogMiws", "back: …8914 …8930 …8946", []string{"sensor/17 1"}}},
	},
	{
		name: "snsfanout", shows: "each subscriber handles each message once", async: true,
		effect: logged("customer notified", "order", "subscriber"), want: []string{"17 snsfanout"},
		first: done, held: "BatchError", later: done,
		acts:  []act{{"two subscribers", twoSubscribers}},
		wrong: []mistake{{"a malformed message", `{\"order\":17}`, `order 17`, "BatchError", nil}},
	},
	{
		name: "mutex", shows: "one after the other, everybody has their turn",
		effect: logged("maintenance done", "instance"), want: []string{"i-0a1b2c3d4e5f60718"}, turns: true, verify: noOverlap("maintenance begun", "maintenance done"),
		first: done, later: done, alone: true,
		acts:  []act{{"at the same moment", together}, {"waiting", waiting(swap(), "i-0a1b2c3d4e5f60718")}},
		wrong: []mistake{{"no instance", "i-0a1b2c3d4e5f60718", "", "KeyError", nil}, {"no action", "patch", "", "errorString", nil}},
	},
	{
		name: "fenced", shows: "a late write is refused, its retry skipped", async: true,
		effect: written, want: []string{"/" + archive + "/accounts/DE-4711/17.json"}, verify: verifyAccount("17", "1042.5"),
		first: done, held: "HeldError", later: done,
		acts:  []act{{"a late writer", lateWriter}},
		wrong: []mistake{{"no account", "DE-4711", "", "KeyError", nil}, {"no statement", `"statement": 17`, `"statement": 0`, "KeyError", nil}, {"no balance", `"balance": "1042.50"`, `"total": 0`, "errorString", nil}},
	},
	{
		name: "nested", shows: "each event once, one of a customer at a time", async: true,
		effect: logged("order booked", "order"), want: []string{"17"},
		first: done, held: "HeldError", later: done,
		acts:  []act{{"another order of the customer", waiting(swap("6a7e8feb", "7b8f9afc", `"order": 17`, `"order": 18`), "18")}},
		wrong: []mistake{{"no customer", `"jane"`, `""`, "KeyError", nil}, {"no id", "6a7e8feb-b491-4cf7-a9f1-bf3703467718", "", "KeyError", nil}},
	},
	{
		name: "urlstream", shows: "one export at a time, 409 until its last byte",
		effect: logged("export done", "rows"), want: []string{"1000"}, turns: true, verify: noOverlap("export begun", "export done"),
		first: "status 200", held: "status 409", later: "status 200", alone: true,
		acts:  []act{{"at the same moment", together}, {"a slow client", slowClient}},
		wrong: []mistake{{"rows is no number", `"rows": "1000"`, `"rows": "all"`, "status 400", nil}, {"not of a Function URL", `"rawPath": "/exports/orders.csv"`, `"rawPath": ""`, "KeyError", nil}},
	},
	{
		name: "unittest", shows: "one receipt for each order", async: true,
		effect: logged("receipt sent", "order"), want: []string{"17"},
		first: done, held: "HeldError", later: done,
		wrong: []mistake{{"no customer", `"jane"`, `""`, "errorString", nil}},
	},
})

// complete fills in what most examples have in common.
func complete(all []example) []example {
	for i := range all {
		if all[i].again == nil {
			all[i].again = callerAgain
		}
		if all[i].verify == nil {
			all[i].verify = func(context.Context, *stage) error { return nil }
		}
	}
	return all
}
