package deadletter

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// Bodies, the name of a group, and a reason.
const (
	upload  = `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"k","sequencer":"0055"}}}]}`
	placed  = `{"order":12345678901234567890,"customer":"jane","nothing":null,"address":{"city":"Rome"},"items":["a","b"],"parts":[{"n":1}],"none":""}`
	group   = "sqs/arn:aws:sqs:eu-west-1:123456789012:orders.fifo/jane"
	nowhere = "it does not say which queue it came from"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	const id = "059f36b4"
	completed := func(keys ...lock.Key) func(*testing.T, *memstore.Store) {
		return func(t *testing.T, store *memstore.Store) {
			for _, k := range keys {
				rowtest.Complete(t, store, k, nil)
			}
		}
	}
	held := func(k lock.Key) func(*testing.T, *memstore.Store) {
		return func(t *testing.T, store *memstore.Store) { rowtest.Acquire(t, store, "f", time.Hour, k) }
	}
	interrupted := func(k lock.Key) func(*testing.T, *memstore.Store) {
		return func(t *testing.T, store *memstore.Store) {
			rowtest.Acquire(t, store, "f", time.Minute, k, func(o *lock.Options) { o.OnInterrupted = lock.FailInterrupted })
			time.Sleep(2 * time.Minute)
		}
	}
	for name, c := range map[string]struct {
		queue, from, body string // the first two by default dlq and orders
		key, name, event  string
		unknown           bool
		rows              func(*testing.T, *memstore.Store)
		action, why       string
	}{
		"completed by id":             {body: placed, rows: completed(lock.Key{Name: "sqs/" + id, Event: id}), action: Delete, why: "completed at "},
		"completed by body":           {body: upload, rows: completed(lock.Key{Name: "s3/b/k", Event: "0055"}), action: Delete, why: "completed"},
		"not completed":               {body: upload, rows: completed(lock.Key{Name: "s3/b/k", Event: "0044"}), action: Send, why: "not remembered"},
		"held":                        {body: upload, rows: held(lock.Key{Name: "s3/b/k", Event: "0044"}), action: Leave, why: "held by another event"},
		"interrupted":                 {body: upload, rows: interrupted(lock.Key{Name: "s3/b/k", Event: "0055"}), action: Leave, why: "OnInterrupted decides"}, // F19
		"interrupted, by id":          {body: placed, unknown: true, rows: interrupted(lock.Key{Name: "sqs/" + id, Event: id}), action: Leave, why: "use complete or forget"},
		"another was interrupted":     {body: upload, rows: interrupted(lock.Key{Name: "s3/b/k", Event: "0044"}), action: Send, why: "died"},
		"no row":                      {body: upload, action: Leave, why: "there is no row"},
		"no row, sent nevertheless":   {body: upload, unknown: true, action: Send, why: "there is no row"},
		"no row of that key":          {body: upload, key: "SQSMessage", rows: completed(lock.Key{Name: "s3/b/k", Event: "0055"}), action: Leave, why: "there is no row"},
		"refused by the key function": {body: placed, key: "SQSBody(S3Object)", action: Leave, why: "SQSBody(S3Object) refuses it"},
		"two rows":                    {body: upload, rows: completed(lock.Key{Name: "s3/b/k", Event: "0055"}, lock.Key{Name: "sqs/" + id, Event: id}), action: Leave, why: "both have a row"},
		"two rows, sends unknown":     {body: upload, unknown: true, rows: completed(lock.Key{Name: "s3/b/k", Event: "0055"}, lock.Key{Name: "sqs/" + id, Event: id}), action: Leave, why: "both have a row"},
		"two rows, one key":           {body: upload, key: "SQSMessage", rows: completed(lock.Key{Name: "s3/b/k", Event: "0055"}, lock.Key{Name: "sqs/" + id, Event: id}), action: Delete},
		"own key, completed":          {body: placed, name: "{{.order}}", event: "{{.order}}", rows: completed(lock.Key{Name: "12345678901234567890", Event: "12345678901234567890"}), action: Delete},
		"own key, completed by id":    {body: placed, name: "{{.customer}}", event: "{{.order}}", rows: completed(lock.Key{Name: "jane", Event: id}), action: Leave, why: "leave out --event"},
		"the same, sends unknown":     {body: placed, name: "{{.customer}}", event: "{{.order}}", unknown: true, rows: completed(lock.Key{Name: "jane", Event: id}), action: Leave, why: "leave out --event"},
		"own name":                    {body: placed, name: "{{.customer}}", rows: completed(lock.Key{Name: "jane", Event: id}), action: Delete},
		"own name, other event":       {body: placed, name: "{{.customer}}", rows: completed(lock.Key{Name: "jane", Event: "x"}), action: Send},
		"own key, no such member":     {body: placed, name: "{{.client}}", action: Leave, why: "its body does not fit"},
		"own key, null":               {body: placed, name: "{{.nothing}}", action: Leave, why: "has nothing where"},
		"own key, empty":              {body: placed, name: "{{.none}}", action: Leave, why: "has nothing where"},
		"own key, object":             {body: placed, name: "{{.address}}", action: Leave, why: "name a field in it, such as {{.order.id}}"},
		"own key, in an object":       {body: placed, name: "{{.address.city}}", rows: completed(lock.Key{Name: "Rome", Event: id}), action: Delete},
		"own key, array":              {body: placed, name: "{{.customer}}", event: "{{.items}}", action: Leave, why: "an object or an array"},
		"own key, formatted object":   {body: placed, name: `{{printf "%v" .address}}`, action: Leave, why: "an object or an array"},
		"own key, object of an array": {body: placed, name: "{{.customer}}", event: "{{index .parts 0}}", action: Leave, why: "an object or an array"},
		"own key, in an array":        {body: placed, name: "{{.customer}}", event: "{{index .items 0}}", rows: completed(lock.Key{Name: "jane", Event: "a"}), action: Delete},
		"own key, of an array":        {body: placed, name: "{{.customer}}", event: "{{range .items}}{{.}}{{end}}", rows: completed(lock.Key{Name: "jane", Event: "ab"}), action: Delete},
		"own key, no JSON":            {body: "jane", name: "{{.customer}}", action: Leave, why: "is not JSON"},
		"own key, two documents":      {body: `{"customer":"a"}{}`, name: "{{.customer}}", action: Leave, why: "something after"},
		"mismatch":                    {body: placed, name: "{{.customer}}", event: "e", rows: held(lock.Key{Name: "jane", Event: "e", Payload: "p"}), action: Leave, why: "held by a delivery of the same event"},
		"completed, payload":          {body: upload, unknown: true, rows: completed(lock.Key{Name: "s3/b/k", Event: "0055", Payload: "p"}), action: Leave, why: "with a payload, which this key does not give"},
		"own key, payload":            {body: placed, name: "{{.customer}}", event: "{{.order}}", rows: completed(lock.Key{Name: "jane", Event: "12345678901234567890", Payload: "p"}), action: Leave, why: "with a payload, which this key does not give"},
		"own key, payload, by id":     {body: placed, name: "{{.customer}}", event: "{{.order}}", rows: completed(lock.Key{Name: "jane", Event: id, Payload: "p"}), action: Leave, why: "leave out --event"},
		"completed, nowhere to send":  {from: "-", body: placed, rows: completed(lock.Key{Name: "sqs/" + id, Event: id}), action: Delete},
		"nowhere to send":             {from: "-", body: upload, rows: completed(lock.Key{Name: "s3/b/k", Event: "0044"}), action: Leave, why: nowhere},
		"nowhere to send, unknown":    {from: "-", body: placed, unknown: true, action: Leave, why: nowhere},
		"number of the queue":         {queue: "dlq.fifo", body: placed, key: "SQSFIFOMessage", rows: completed(lock.Key{Name: group, Event: "7", Order: "0017"}), action: Leave, why: "sequence number"},
		"its number after all":        {queue: "dlq.fifo", body: placed, key: "SQSFIFOMessage", rows: completed(lock.Key{Name: group, Event: "00000000000000000001"}), action: Delete},
		"id in the name":              {queue: "dlq.fifo", body: placed, key: "SQSMessage", rows: completed(lock.Key{Name: "sqs/" + id, Event: "x"}), action: Send},
		"id in a FIFO queue":          {queue: "dlq.fifo", body: placed, name: "{{.customer}}", rows: completed(lock.Key{Name: "jane", Event: "x"}), action: Leave, why: "the message id"},
		"group and order, completed":  {queue: "dlq.fifo", body: placed, key: "SQSFIFOMessage", event: "{{.order}}", rows: completed(lock.Key{Name: group, Event: "12345678901234567890", Order: "999"}), action: Delete},
		"group and order, failed":     {queue: "dlq.fifo", body: placed, key: "SQSFIFOMessage", event: "{{.order}}", rows: completed(lock.Key{Name: group, Event: "18", Order: "999"}), action: Send},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				if c.rows != nil {
					c.rows(t, store)
				}
				queue, from, group := "dlq", "orders", ""
				if c.queue != "" {
					queue, from, group = c.queue, "orders.fifo", "jane"
				}
				f := sqstest.New(t, from, queue)
				m := f.Put(queue, from, id, group, c.body)
				if c.from == "-" {
					delete(m.Attributes, "DeadLetterQueueSourceArn")
				}
				j := &Judge{Store: store, Namespace: "orders", Function: c.key, Unknown: c.unknown}
				if c.name != "" {
					j.Name, _ = Template(c.name)
				}
				if c.event != "" {
					j.Event, _ = Template(c.event)
				}
				q := expect.Value(open(t, f, queue))(t)
				round, err := NewRun(q, j).Next(t.Context())
				if err != nil || len(round) != 1 {
					t.Fatalf("%+v, %v", round, err)
				}
				if d := round[0]; d.Action != c.action || !strings.Contains(d.Why, c.why) || (d.To != "") != (d.Action == Send) {
					t.Errorf("got %+v, want %s because of %q", d, c.action, c.why)
				}
			})
		})
	}
}

// TestDecisionNamesTheKey: a person who guesses the key sees what was looked
// for, also if there is no such row.
func TestDecisionNamesTheKey(t *testing.T) {
	t.Parallel()
	name := expect.Value(Template("customer/{{.customer}}"))(t)
	for body, c := range map[string]struct {
		judge Judge
		want  Decision
	}{
		placed: {Judge{Name: name}, Decision{Function: "the given key", Name: "customer/jane", Event: "m1", Row: "orders/customer/jane"}},
		"{}":   {Judge{}, Decision{Function: "SQSMessage", Name: "sqs/m1", Event: "m1", Row: "orders/sqs/m1"}},
		upload: {Judge{}, Decision{}}, // it has two
	} {
		f := sqstest.New(t, "orders", "dlq")
		f.Put("dlq", "orders", "m1", "", body)
		q := expect.Value(open(t, f, "dlq"))(t)
		c.judge.Store, c.judge.Namespace = memstore.New(), "orders"
		round, err := NewRun(q, &c.judge).Next(t.Context())
		if err != nil || len(round) != 1 {
			t.Fatalf("%+v, %v", round, err)
		}
		d := round[0]
		if got := (Decision{Function: d.Function, Name: d.Name, Event: d.Event, Row: d.Row}); got != c.want || d.Action != Leave {
			t.Errorf("%s\ngot  %+v\nwant %+v", body, got, c.want)
		}
	}
}
