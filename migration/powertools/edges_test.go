package powertools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/migration/powertools"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

var event = json.RawMessage(`{"order": 17, "total": 2}`)

// invoke invokes a version once, with 20 s to its deadline.
func invoke(t *testing.T, version func(context.Context, json.RawMessage) (order, error)) (order, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return version(ctx, event)
}

// record is a row of event by its default names.
func record(status string, expiration, end time.Duration) map[string]json.RawMessage {
	now := time.Now()
	item := map[string]json.RawMessage{
		"id":     json.RawMessage(`{"S": "orders#9271a8dab36ba4c514dac412f086734b"}`),
		"status": json.RawMessage(fmt.Sprintf(`{"S": %q}`, status)), "expiration": json.RawMessage(fmt.Sprintf(`{"N": "%d"}`, now.Add(expiration).Unix())),
		"data": json.RawMessage(`{"S": "{\"order\": 17, \"status\": \"before\"}"}`), "validation": json.RawMessage(`{"S": "c81e728d9d4c2f636f067f89cc14862c"}`),
	}
	if end != 0 {
		item["in_progress_expiration"] = json.RawMessage(fmt.Sprintf(`{"N": "%d"}`, now.Add(end).UnixMilli()))
	}
	return item
}

// TestRecords looks at one record before and after CutOver.
func TestRecords(t *testing.T) {
	t.Parallel()
	held := func(err error) bool { return errors.As(err, new(*lock.HeldError)) }
	wrong := func(err error) bool { return errors.As(err, new(*lock.StoreError)) }
	mismatch := func(err error) bool { return errors.As(err, new(*lock.PayloadMismatchError)) }
	for name, c := range map[string]struct {
		status          string
		expiration, end time.Duration
		change          func(f *fixture, item map[string]json.RawMessage)
		want            string // status of the result; empty: an error
		err             func(error) bool
	}{
		"completed":                                   {status: "COMPLETED", expiration: 0, end: -time.Hour, want: "before"},
		"completed, expired":                          {status: "COMPLETED", expiration: -time.Second, want: "shipped"},
		"in progress":                                 {status: "INPROGRESS", expiration: time.Hour, end: time.Second, err: held},
		"in progress, ended just now":                 {status: "INPROGRESS", expiration: 0, end: -2 * time.Second, err: held},
		"in progress, ended":                          {status: "INPROGRESS", expiration: time.Hour, end: -2001 * time.Millisecond, want: "shipped"},
		"in progress, without an end":                 {status: "INPROGRESS", expiration: time.Hour, err: held},
		"in progress, to a fraction of a millisecond": {status: "INPROGRESS", expiration: time.Hour, change: fraction, err: held},
		"in progress, to a wrong time":                {status: "INPROGRESS", expiration: time.Hour, change: set("in_progress_expiration", `{"S": "noon"}`), err: wrong},
		"in progress, expired":                        {status: "INPROGRESS", expiration: -time.Second, want: "shipped"},
		"unknown status":                              {status: "PAUSED", expiration: time.Hour, err: wrong},
		"another payload":                             {status: "COMPLETED", expiration: time.Hour, change: validate(3), err: mismatch},
		"another payload, in progress":                {status: "INPROGRESS", expiration: time.Hour, end: time.Hour, change: validate(3), err: mismatch},
		"the same payload":                            {status: "COMPLETED", expiration: time.Hour, change: validate(2), want: "before"},
		"another result":                              {status: "COMPLETED", expiration: time.Hour, change: set("data", `{"S": "[]"}`), err: wrong},
		"no result":                                   {status: "COMPLETED", expiration: time.Hour, change: set("data", ""), want: ""},
		"null":                                        {status: "COMPLETED", expiration: time.Hour, change: set("data", `{"S": "null"}`), want: ""},
		"no status":                                   {status: "COMPLETED", expiration: time.Hour, change: set("status", ""), err: wrong},
		"no expiration":                               {status: "INPROGRESS", expiration: time.Hour, change: set("expiration", ""), err: wrong},
		"renamed attributes":                          {status: "COMPLETED", expiration: time.Hour, change: rename("status", "expiration", "data"), want: "before"},
		"renamed, in progress":                        {status: "INPROGRESS", expiration: time.Hour, end: time.Hour, change: rename("in_progress_expiration", "validation"), err: held},
		"renamed, in progress, expired":               {status: "INPROGRESS", expiration: time.Hour, end: -time.Hour, change: rename("in_progress_expiration"), want: "shipped"},
	} {
		for when, cutOver := range map[string]time.Duration{"before": time.Hour, "after": -time.Hour} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					f.options.CutOver = time.Now().Add(cutOver)
					item := record(c.status, c.expiration, c.end)
					if c.change != nil {
						c.change(f, item)
					}
					f.put(t, item)
					o, err := invoke(t, f.function())
					if o.Status != c.want || (c.err == nil) != (err == nil) || c.err != nil && !c.err(err) {
						t.Errorf("%+v, %v", o, err)
					}
					if ran := len(f.runs) == 1; ran != (c.want == "shipped") {
						t.Errorf("ran: %t", ran)
					}
				})
			})
		}
	}
}

func validate(part int) func(*fixture, map[string]json.RawMessage) {
	return func(f *fixture, _ map[string]json.RawMessage) {
		f.options.Validation = func(json.RawMessage) any { return part }
	}
}

func set(name, value string) func(*fixture, map[string]json.RawMessage) {
	return func(_ *fixture, item map[string]json.RawMessage) {
		if item[name] = json.RawMessage(value); value == "" {
			delete(item, name)
		}
	}
}

func fraction(_ *fixture, item map[string]json.RawMessage) {
	item["in_progress_expiration"] = json.RawMessage(fmt.Sprintf(`{"N": "%d.5"}`, time.Now().Add(time.Minute).UnixMilli()))
}

func rename(names ...string) func(*fixture, map[string]json.RawMessage) {
	return func(f *fixture, item map[string]json.RawMessage) {
		f.options.Attributes = map[string]string{}
		for _, name := range names {
			f.options.Attributes[name] = "our_" + name
			if v, ok := item[name]; ok {
				item["our_"+name] = v
				delete(item, name)
			}
		}
	}
}

// TestClaims looks at what a claim leaves for the old version.
func TestClaims(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work     func(context.Context) error
		copies   bool // the SDK repeats each request
		want     string
		retained time.Duration
	}{
		"completed":                     {want: "shipped"},
		"completed, requests repeated":  {copies: true, want: "shipped"},
		"failed":                        {work: func(context.Context) error { return errors.New("failed") }},
		"failed, requests repeated":     {work: func(context.Context) error { return errors.New("failed") }, copies: true},
		"panicked":                      {work: func(context.Context) error { panic("panicked") }},
		"completed after the deadline":  {work: func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second / 2); return nil }, want: "shipped"},
		"failed after the deadline":     {work: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		"retained shorter than it runs": {work: func(context.Context) error { time.Sleep(15 * time.Second); return nil }, retained: 5 * time.Second, want: "shipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.options.CutOver = time.Now().Add(time.Hour)
				if c.retained > 0 {
					f.options.Retention = c.retained
				}
				var sent []*dynamodb.UpdateItemInput
				f.options.Client = &hooked{f, func(in *dynamodb.UpdateItemInput) {
					if sent = append(sent, in); c.copies {
						_, _ = f.Client.UpdateItem(t.Context(), in)
					}
				}}
				work := c.work
				f.work = func(ctx context.Context) error {
					if _, err := invoke(t, f.old); err == nil || !strings.Contains(err.Error(), "AlreadyInProgress") {
						t.Errorf("at the beginning the old version gets %v", err)
					}
					if work == nil {
						return nil
					}
					err := work(ctx)
					if _, oldErr := invoke(t, f.old); oldErr == nil {
						t.Error("at the end the old version is not refused")
					}
					return err
				}
				panicked := func() (panicked bool) {
					defer func() { panicked = recover() != nil }()
					_, _ = invoke(t, f.function())
					return false
				}()
				if panicked != (name == "panicked") {
					t.Errorf("panicked: %t", panicked)
				}
				if len(sent) == 0 {
					t.Fatal("nothing was claimed")
				}
				if c.want != "" { // a late copy of the claim changes nothing
					_, _ = f.Client.UpdateItem(t.Context(), sent[0])
				}
				before := len(f.runs)
				f.work = func(context.Context) error { return nil }
				o, err := invoke(t, f.old)
				if err != nil || o.Status != "shipped" || (len(f.runs) == before) != (c.want != "") {
					t.Errorf("the old version returns %+v, %v, after %d runs, then %d", o, err, before, len(f.runs))
				}
			})
		})
	}
}

// TestClaimLastsToTheDeadline: a handler that ignores its context runs on after
// it, until Lambda ends it. The old version is kept away so long, and also if
// its clock is ahead.
func TestClaimLastsToTheDeadline(t *testing.T) {
	t.Parallel()
	byName := func(context.Context, json.RawMessage) (lock.Key, error) { return lock.Key{Name: "around"}, nil }
	for name, c := range map[string]struct {
		set    func(*lock.Options)
		around int // locks
		ahead  time.Duration
	}{
		"default":               {set: func(*lock.Options) {}, ahead: 2 * time.Second},
		"a long reserve":        {set: func(o *lock.Options) { o.Reserve = 10 * time.Second }, ahead: 2 * time.Second},
		"two locks around":      {set: func(*lock.Options) {}, around: 2, ahead: 2 * time.Second},
		"and a long reserve":    {set: func(o *lock.Options) { o.Reserve = 3 * time.Second }, around: 2, ahead: 2 * time.Second},
		"clocks differ by more": {set: func(o *lock.Options) { o.Grace = 5 * time.Second }, ahead: 5 * time.Second},
		"a heartbeat":           {set: func(o *lock.Options) { o.Lease, o.Reserve = lock.Heartbeat(5*time.Second), 10*time.Second }, ahead: 2 * time.Second},
		"a fixed lease":         {set: func(o *lock.Options) { o.Lease = lock.FixedLease(5 * time.Second) }, ahead: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.options.CutOver = time.Now().Add(time.Hour)
				ends := time.Now().Add(20 * time.Second)
				f.work = func(context.Context) error {
					time.Sleep(time.Until(ends.Add(c.ahead)))
					if _, err := invoke(t, f.old); err == nil || !strings.Contains(err.Error(), "AlreadyInProgress") {
						t.Errorf("until the deadline the old version gets %v", err)
					}
					return errors.New("failed")
				}
				function := f.function(middleware.Engine(c.set))
				for range c.around {
					function = middleware.WithLock(byName, function, middleware.Store(memstore.New()), middleware.Engine(c.set), middleware.Logger(slog.New(slog.DiscardHandler)))
				}
				_, _ = invoke(t, function)
			})
		})
	}
}

// hooked tells of each update before it is sent.
type hooked struct {
	*fixture
	update func(*dynamodb.UpdateItemInput)
}

func (h *hooked) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	h.update(in)
	return h.fixture.UpdateItem(ctx, in, opts...)
}

// deaf is a table of which the answer to one write never arrives.
type deaf struct {
	*fixture
	left int // writes up to that one
}

func (d *deaf) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := d.fixture.UpdateItem(ctx, in, opts...)
	if d.left--; d.left == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return out, err
}

// TestUnansweredClaim: a claim that was written, but not answered, keeps no
// version from the event.
func TestUnansweredClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.CutOver, f.options.Client = time.Now().Add(time.Hour), &deaf{f, 1}
		function := f.function()
		if _, err := invoke(t, function); !errors.As(err, new(*lock.StoreError)) || len(f.runs) != 0 {
			t.Errorf("%v, %d runs", err, len(f.runs))
		}
		if o, err := invoke(t, function); err != nil || o.Status != "shipped" {
			t.Errorf("the next delivery returns %+v, %v", o, err)
		}
	})
}

// TestHungAtTheEnd: if the old table hangs near the deadline, the lock still
// has half of its reserve for its own completion.
func TestHungAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ timeout, chosen, reserve time.Duration }{
		"3 s":                    {3 * time.Second, 0, 300 * time.Millisecond},
		"1 min":                  {time.Minute, 0, time.Second},
		"1 min, a short reserve": {time.Minute, 200 * time.Millisecond, 200 * time.Millisecond},
		"1 min, a long reserve":  {time.Minute, 5 * time.Second, 5 * time.Second},
	} {
		for when, early := range map[string]time.Duration{"just before": time.Millisecond, "at": 0, "after": -c.reserve / 10} {
			t.Run(fmt.Sprintf("%s, completed %s the end", name, when), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					f.options.CutOver, f.options.Client = time.Now().Add(time.Hour), &deaf{f, 2}
					f.work = func(ctx context.Context) error {
						end, _ := ctx.Deadline()
						time.Sleep(time.Until(end) - early)
						return nil
					}
					ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
					defer cancel()
					_, err := f.function(middleware.Engine(func(o *lock.Options) { o.Reserve = c.chosen }))(ctx, event)
					if deadline, _ := ctx.Deadline(); time.Until(deadline) < c.reserve/2 || err != nil {
						t.Errorf("%v, with %v left", err, time.Until(deadline))
					}
				})
			})
		}
	}
}

// broken is a table that answers with an error, or never.
type broken struct {
	err      error
	key      map[string]types.AttributeValue // that was asked for
	requests int
}

func (b *broken) answer(ctx context.Context, key map[string]types.AttributeValue) error {
	b.requests++
	if b.key = key; b.err != nil {
		return b.err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (b *broken) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return nil, b.answer(ctx, in.Key)
}

func (b *broken) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, b.answer(ctx, in.Key)
}

// TestBrokenTable: without an answer nothing runs, and the error says what to
// change, and how often it asked: a claim that was refused for good needs no
// end.
func TestBrokenTable(t *testing.T) {
	t.Parallel()
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "User is not authorized to perform: dynamodb:GetItem on resource"}
	for name, c := range map[string]struct {
		err    error
		within string
	}{
		"hung":   {nil, "deadline"},
		"denied": {denied, "dynamodb:GetItem was denied"},
		"key":    {&smithy.GenericAPIError{Code: "ValidationException", Message: "The provided key element does not match the schema"}, "the keys"},
	} {
		for when, cutOver := range map[string]time.Duration{"before": time.Hour, "after": -time.Hour} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f, b := newFixture(t), &broken{err: c.err}
					f.options.CutOver, f.options.Client = time.Now().Add(cutOver), b
					f.options.SortKey, f.options.PartitionKey = "sort", "idempotency#orders"
					began := time.Now()
					_, err := invoke(t, f.function())
					requests := 1
					if c.err == nil && cutOver > 0 {
						requests = 2
					}
					e := new(lock.StoreError)
					if !errors.As(err, &e) || !strings.Contains(err.Error(), c.within) || !strings.Contains(err.Error(), table) {
						t.Errorf("%v", err)
					}
					if b.requests != requests || e.Requests != requests {
						t.Errorf("%d requests, and the error says %d; want %d", b.requests, e.Requests, requests)
					}
					if took := time.Since(began); took > 5*time.Second || len(f.runs) != 0 {
						t.Errorf("took %v, ran %d times", took, len(f.runs))
					}
					if id, _ := f.options.ID(event); len(b.key) != 2 || *text(b.key["id"]) != "idempotency#orders" || *text(b.key["sort"]) != id {
						t.Errorf("asked for %v", b.key)
					}
				})
			})
		}
	}
}

// TestClaimIsEndedAfterItsContext: a claim that may have been written is ended
// also if nobody waits for it any more. It would keep the event from both
// versions until the deadline.
func TestClaimIsEndedAfterItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, b := newFixture(t), &broken{}
		f.options.CutOver, f.options.Client = time.Now().Add(time.Hour), b
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := f.function()(ctx, event); !errors.Is(err, context.Canceled) || b.requests != 2 {
			t.Errorf("%d requests, want a claim and its end: %v", b.requests, err)
		}
	})
}

func text(v types.AttributeValue) *string { return &v.(*types.AttributeValueMemberS).Value }

// TestNoPart: an event without a part has no old record, and an event of the
// old table that is not JSON is refused.
func TestNoPart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		part  any
		runs  int
		wrong bool
	}{
		"nil":      {part: nil, runs: 1},
		"null":     {part: json.RawMessage("null"), runs: 1},
		"not JSON": {part: json.RawMessage("{"), wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.options.Part = func(json.RawMessage) any { return c.part }
				_, err := invoke(t, f.function())
				if (err != nil) != c.wrong || c.wrong && !errors.As(err, new(*lock.NoKeyError)) || len(f.runs) != c.runs {
					t.Errorf("%v, %d runs", err, len(f.runs))
				}
				f.requests(t, name, 0, 0)
			})
		})
	}
}

// TestRecordHandler: of a batch, the messages that the old version completed
// are acknowledged, whatever their results, and one that it works on comes
// back. Python writes NaN, which JSON does not have.
func TestRecordHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		old := powertools.Table[events.SQSMessage]{
			Client: f, Name: table, Language: powertools.Python, Prefix: "orders", CutOver: time.Now(), Retention: retention,
			Part: func(m events.SQSMessage) any { return m.MessageId },
		}
		var batch events.SQSEvent
		for id, status := range map[string]string{"completed": "COMPLETED", "completed, NaN": "COMPLETED", "busy": "INPROGRESS", "new": ""} {
			m := events.SQSMessage{MessageId: id, EventSource: "aws:sqs"}
			batch.Records = append(batch.Records, m)
			if status == "" {
				continue
			}
			item := record(status, time.Hour, time.Hour)
			key := expect.Value(old.ID(m))(t)
			item["id"] = json.RawMessage(fmt.Sprintf(`{"S": %q}`, key))
			if id == "completed, NaN" {
				item["data"] = json.RawMessage(`{"S": "{\"total\": NaN}"}`)
			}
			f.put(t, item)
		}
		var ran []string
		handler := middleware.EachSQSMessage(keyfuncs.SQSMessage, powertools.RecordHandler(old, func(_ context.Context, m events.SQSMessage) error {
			ran = append(ran, m.MessageId)
			return nil
		}), middleware.Store(memstore.New()), middleware.Concurrency(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		answer, err := handler(ctx, batch)
		if len(answer.BatchItemFailures) != 1 || answer.BatchItemFailures[0].ItemIdentifier != "busy" || err != nil || len(ran) != 1 || ran[0] != "new" {
			t.Errorf("%+v, %v, ran %v", answer, err, ran)
		}
	})
}

// TestWrongUse: a missing field is found before the first event.
func TestWrongUse(t *testing.T) {
	t.Parallel()
	whole := powertools.Table[json.RawMessage]{
		Client: &broken{}, Name: table, Language: powertools.Python, Prefix: "orders", Part: whole, CutOver: time.Now(), Retention: retention,
	}
	for field, leaveOut := range map[string]func(*powertools.Table[json.RawMessage]){
		"the handler":  nil,
		"Client":       func(o *powertools.Table[json.RawMessage]) { o.Client = nil },
		"Name":         func(o *powertools.Table[json.RawMessage]) { o.Name = "" },
		"Language":     func(o *powertools.Table[json.RawMessage]) { o.Language = 0 },
		"Prefix":       func(o *powertools.Table[json.RawMessage]) { o.Prefix = "" },
		"Part":         func(o *powertools.Table[json.RawMessage]) { o.Part = nil },
		"CutOver":      func(o *powertools.Table[json.RawMessage]) { o.CutOver = time.Time{} },
		"Retention":    func(o *powertools.Table[json.RawMessage]) { o.Retention = 0 },
		"PartitionKey": func(o *powertools.Table[json.RawMessage]) { o.SortKey = "sort" },
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, field) || strings.Contains(said, "\n") {
					t.Errorf("panicked with %q", said)
				}
			}()
			options, handler := whole, func(context.Context, json.RawMessage) error { return nil }
			if leaveOut == nil {
				handler = nil
			} else {
				leaveOut(&options)
			}
			powertools.RecordHandler(options, handler)
		})
	}
}

// TestLatest: a run under Latest is refused. The next one, which the lock owes
// to others, would find the event completed, and be left out.
func TestLatest(t *testing.T) {
	t.Parallel()
	key := func(context.Context, json.RawMessage) (lock.Key, error) {
		return lock.Key{Name: "orders", Event: "17"}, nil
	}
	store := func() middleware.Option { return middleware.Store(memstore.New()) }
	quiet := middleware.Logger(slog.New(slog.DiscardHandler))
	type function func(context.Context, json.RawMessage) error
	for name, wrap := range map[string]func(function) function{
		"Latest": func(work function) function { return middleware.Latest(key, work, store(), quiet) },
		"a lock inside Latest": func(work function) function {
			return middleware.Latest(key, middleware.WithLock(key, work, store(), quiet), store(), quiet)
		},
		"OnlyLatest": func(work function) function {
			var failed error
			message := func(context.Context, events.SQSMessage) (lock.Key, error) { return key(nil, nil) }
			batch := middleware.EachSQSMessage(message, func(ctx context.Context, m events.SQSMessage) error {
				failed = work(ctx, event)
				return failed
			}, middleware.OnlyLatest(), store(), quiet)
			return func(ctx context.Context, _ json.RawMessage) error {
				failed = nil
				_, _ = batch(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSource: "aws:sqs"}}})
				return failed
			}
		},
	} {
		for when, c := range map[string]struct {
			cutOver time.Duration
			refused bool
		}{"before": {time.Hour, true}, "after": {-time.Hour, true}, "once the table is not asked any more": {-retention, false}} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f, ran := newFixture(t), false
					f.options.CutOver = time.Now().Add(c.cutOver)
					work := wrap(powertools.RecordHandler(f.options, func(context.Context, json.RawMessage) error { ran = true; return nil }))
					err := work(t.Context(), event)
					if refused := errors.As(err, new(*lock.ConfigError)); refused != c.refused || ran == c.refused || !refused && err != nil {
						t.Errorf("ran: %t, %v", ran, err)
					}
					f.requests(t, name, 0, 0)
				})
			})
		}
	}
}

// TestOvertakenClaim: who has lost the record to another version ends nothing.
func TestOvertakenClaim(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"completed": nil, "failed": errors.New("failed")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.options.CutOver = time.Now().Add(time.Hour)
				f.work = func(context.Context) error {
					f.put(t, record("INPROGRESS", time.Hour, time.Hour))
					return failure
				}
				_, _ = invoke(t, f.function())
				if _, err := invoke(t, f.old); err == nil {
					t.Error("the record does not say any more that the event is in progress")
				}
			})
		})
	}
}
