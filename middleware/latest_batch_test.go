package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// itemChange is a record of a batch: name, event and what the handler does.
type itemChange struct{ name, event, does string }

// changes are batches of changes from a source. It calls key and handle with
// each, and returns the places of those that come again.
type changes func(ctx context.Context, t *testing.T, batch []itemChange, key func(itemChange) lock.Key, handle func(context.Context, itemChange) error, opts ...middleware.Option) []int

func parse(text string) itemChange {
	p := strings.Split(text, " ")
	return itemChange{p[0], p[1], p[2]}
}

func (c itemChange) String() string { return c.name + " " + c.event + " " + c.does }

func sqsChanges(fifo bool) changes {
	return func(ctx context.Context, t *testing.T, batch []itemChange, key func(itemChange) lock.Key, handle func(context.Context, itemChange) error, opts ...middleware.Option) []int {
		h := middleware.EachSQSMessage(
			func(_ context.Context, m events.SQSMessage) (lock.Key, error) { return key(parse(m.Body)), nil },
			func(ctx context.Context, m events.SQSMessage) error { return handle(ctx, parse(m.Body)) }, opts...)
		var e events.SQSEvent
		for i, c := range batch {
			m := events.SQSMessage{MessageId: fmt.Sprint(i), Body: c.String(), EventSource: "aws:sqs", Attributes: map[string]string{}}
			if fifo {
				m.Attributes["MessageGroupId"], m.Attributes["SequenceNumber"] = "g", fmt.Sprint(i)
			}
			e.Records = append(e.Records, m)
		}
		answer, err := h(ctx, e)
		var again []int
		for _, f := range answer.BatchItemFailures {
			again = append(again, place(t, f.ItemIdentifier))
		}
		if err != nil && len(again) < len(batch) {
			t.Error(err)
		}
		return again
	}
}

func place(t *testing.T, s string) (i int) {
	expect.Value(fmt.Sscan(s, &i))(t)
	return i
}

// wholly returns what comes again of a batch that is delivered again as a
// whole.
func wholly(batch []itemChange, err error) []int {
	if err == nil {
		return nil
	}
	var failed *middleware.BatchError
	var again []int
	for i := range batch {
		if errors.As(err, &failed) {
			again = append(again, i)
		}
	}
	return again
}

var changesFrom = map[string]changes{
	"SQS":  sqsChanges(false),
	"FIFO": sqsChanges(true),
	"Kinesis": func(ctx context.Context, t *testing.T, batch []itemChange, key func(itemChange) lock.Key, handle func(context.Context, itemChange) error, opts ...middleware.Option) (again []int) {
		h := middleware.EachKinesisRecord(
			func(_ context.Context, r events.KinesisEventRecord) (lock.Key, error) {
				return key(parse(string(r.Kinesis.Data))), nil
			},
			func(ctx context.Context, r events.KinesisEventRecord) error {
				return handle(ctx, parse(string(r.Kinesis.Data)))
			}, opts...)
		var e events.KinesisEvent
		for i, c := range batch {
			e.Records = append(e.Records, events.KinesisEventRecord{EventID: "shard:" + fmt.Sprint(i), Kinesis: events.KinesisRecord{Data: []byte(c.String()), SequenceNumber: fmt.Sprint(i)}})
		}
		answer, _ := h(ctx, middleware.KinesisRecords{KinesisEvent: e})
		for _, f := range answer.BatchItemFailures {
			again = append(again, place(t, f.ItemIdentifier))
		}
		return again
	},
	"DynamoDB": func(ctx context.Context, t *testing.T, batch []itemChange, key func(itemChange) lock.Key, handle func(context.Context, itemChange) error, opts ...middleware.Option) (again []int) {
		h := middleware.EachDynamoDBRecord(
			func(_ context.Context, r events.DynamoDBEventRecord) (lock.Key, error) {
				return key(parse(r.EventName)), nil
			},
			func(ctx context.Context, r events.DynamoDBEventRecord) error { return handle(ctx, parse(r.EventName)) }, opts...)
		var e events.DynamoDBEvent
		for i, c := range batch {
			e.Records = append(e.Records, events.DynamoDBEventRecord{EventName: c.String(), Change: events.DynamoDBStreamRecord{SequenceNumber: fmt.Sprint(i)}})
		}
		answer, _ := h(ctx, middleware.DynamoDBRecords{DynamoDBEvent: e})
		for _, f := range answer.BatchItemFailures {
			again = append(again, place(t, f.ItemIdentifier))
		}
		return again
	},
	"Kafka": func(ctx context.Context, _ *testing.T, batch []itemChange, key func(itemChange) lock.Key, handle func(context.Context, itemChange) error, opts ...middleware.Option) []int {
		h := middleware.EachKafkaRecord(
			func(_ context.Context, r events.KafkaRecord) (lock.Key, error) { return key(parse(r.Value)), nil },
			func(ctx context.Context, r events.KafkaRecord) error { return handle(ctx, parse(r.Value)) }, opts...)
		e := events.KafkaEvent{Records: map[string][]events.KafkaRecord{}}
		for i, c := range batch {
			partition := fmt.Sprint("t-", i%3)
			e.Records[partition] = append(e.Records[partition], events.KafkaRecord{Topic: "t", Partition: int64(i % 3), Offset: int64(i), Value: c.String()})
		}
		_, err := h(ctx, e)
		return wholly(batch, err)
	},
	"custom bus": func(ctx context.Context, _ *testing.T, batch []itemChange, key func(itemChange) lock.Key, handle func(context.Context, itemChange) error, opts ...middleware.Option) []int {
		h := middleware.EachEventBridgeEvent(
			func(_ context.Context, r awsevents.CustomBusEvent) (lock.Key, error) {
				return key(parse(string(r.Data))), nil
			},
			func(ctx context.Context, r awsevents.CustomBusEvent) error { return handle(ctx, parse(string(r.Data))) }, opts...)
		var e awsevents.CustomBusEvents
		for _, c := range batch {
			e = append(e, awsevents.CustomBusEvent{Data: []byte(c.String())})
		}
		return wholly(batch, h(ctx, e))
	},
	"DocumentDB": func(ctx context.Context, _ *testing.T, batch []itemChange, key func(itemChange) lock.Key, handle func(context.Context, itemChange) error, opts ...middleware.Option) []int {
		h := middleware.EachDocumentDBRecord(
			func(_ context.Context, r awsevents.DocumentDBEventRecord) (lock.Key, error) {
				return key(parse(r.Event.OperationType)), nil
			},
			func(ctx context.Context, r awsevents.DocumentDBEventRecord) error {
				return handle(ctx, parse(r.Event.OperationType))
			}, opts...)
		var e awsevents.DocumentDBEvent
		for _, c := range batch {
			var r awsevents.DocumentDBEventRecord
			r.Event.OperationType = c.String()
			e.Events = append(e.Events, r)
		}
		return wholly(batch, h(ctx, e))
	},
}

// handlesChanges does what a change says, and notes those that ran.
func handlesChanges(ran *[]string) func(context.Context, itemChange) error {
	var mu sync.Mutex // changes of different names run at once
	return func(ctx context.Context, c itemChange) error {
		mu.Lock()
		*ran = append(*ran, c.event)
		mu.Unlock()
		switch c.does {
		case "fails":
			return errors.New("failed")
		case "permanent":
			return middleware.Permanent(errors.New("never"))
		case "panics":
			panic(middleware.Permanent(errors.New("never")))
		case "exits":
			runtime.Goexit()
		case "long":
			time.Sleep(8900 * time.Millisecond)
		}
		return nil
	}
}

func keyOfChange(c itemChange) lock.Key { return lock.Key{Name: c.name, Event: c.event} }

// TestChangesOfOneBatch sends a hundred changes of each of two names in one
// batch: each name has one run and two requests.
func TestChangesOfOneBatch(t *testing.T) { // F32
	t.Parallel()
	for source, send := range changesFrom {
		for names, runs := range map[string]int{"a": 1, "ab": 2} {
			t.Run(source+" "+names, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture()
					var batch []itemChange
					for i := range 100 * len(names) {
						batch = append(batch, itemChange{names[i%len(names) : i%len(names)+1], fmt.Sprint("e", i), "ok"})
					}
					var ran []string
					again := send(t.Context(), t, batch, keyOfChange, handlesChanges(&ran), f.options(middleware.OnlyLatest())...)
					if len(again) > 0 || len(ran) != runs || f.count(lock.OutcomeCoalesced) != len(batch)-runs {
						t.Errorf("%d runs, %d coalesced, %v come again", len(ran), f.count(lock.OutcomeCoalesced), again)
					}
					if n := f.faulty.Requests(fault.Acquire) + f.faulty.Requests(fault.Mark) + f.faulty.Requests(fault.Release); n != 2*runs {
						t.Errorf("%d requests", n)
					}
				})
			})
		}
	}
}

// TestHoldersOwnEventComesAgain delivers the event of a holder once more, in a
// batch with another one of its name.
func TestHoldersOwnEventComesAgain(t *testing.T) { // F1
	t.Parallel()
	for source, send := range changesFrom {
		for at := range 2 { // its place in the batch
			t.Run(fmt.Sprint(source, " ", at), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture()
					batch := []itemChange{{"a", "other", "ok"}, {"a", "third", "ok"}}
					batch[at].event = "own"
					var ran []string
					sqsChanges(false)(t.Context(), t, []itemChange{{"a", "own", "ok"}}, keyOfChange, func(context.Context, itemChange) error {
						if len(ran) > 0 {
							return nil // the run that is owed
						}
						again := send(t.Context(), t, batch, keyOfChange, handlesChanges(&ran), f.options(middleware.OnlyLatest())...)
						if !slices.Contains(again, at) || source == "SQS" && len(again) > 1 || len(ran) > 0 {
							t.Errorf("%v come again, %v ran", again, ran)
						}
						ran = append(ran, "own")
						return nil
					}, f.options(middleware.OnlyLatest())...)
				})
			})
		}
	}
}

// TestServedOnlyWithAKey: a record whose key is refused comes again, although
// one of its name before it has run, or was coalesced.
func TestServedOnlyWithAKey(t *testing.T) { // F1
	t.Parallel()
	for name, second := range map[string]struct {
		event  string
		err    error
		beside bool // another invocation, which holds the lock
	}{
		"no event":                            {"", nil, false},
		"a key and an error":                  {"e2", errRecord, false},
		"no event, beside a holder":           {"", nil, true},
		"a key and an error, beside a holder": {"e2", errRecord, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
					if m.MessageId == "2" {
						return lock.Key{Name: "n", Event: second.event}, second.err
					}
					return lock.Key{Name: "n", Event: m.MessageId}, nil
				}
				delivered := false
				var h func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
				deliver := func() {
					delivered = true
					r, err := h(t.Context(), sqsBatch(message("1", ""), message("2", "")))
					wantReturned(t, r, err, "2")
				}
				h = middleware.EachSQSMessage(key, func(context.Context, events.SQSMessage) error {
					if !delivered { // this is the holder
						deliver()
					}
					return nil
				}, newFixture().options(middleware.OnlyLatest())...)
				if !second.beside {
					deliver()
					return
				}
				r, err := h(t.Context(), sqsBatch(message("holder", "")))
				wantReturned(t, r, err)
			})
		})
	}
}

// TestUnlockedRunServesNobody sends records behind one of their name that needs
// no lock, while another invocation holds it: that one's run began before they
// came, and a copy of its own event must come again if it fails.
func TestUnlockedRunServesNobody(t *testing.T) { // F1
	t.Parallel()
	for name, batch := range map[string][]string{"first": {"unlocked", "1"}, "between": {"1", "unlocked", "holder"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
					if m.MessageId == "unlocked" {
						return lock.Key{Name: "n"}, keyfuncs.ErrNoLock
					}
					return lock.Key{Name: "n", Event: m.MessageId}, nil
				}
				var ran []string
				var h func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
				h = middleware.EachSQSMessage(key, func(_ context.Context, m events.SQSMessage) error {
					if ran = append(ran, m.MessageId); len(ran) == 1 {
						var messages []events.SQSMessage
						for _, id := range batch {
							messages = append(messages, message(id, ""))
						}
						r, err := h(t.Context(), sqsBatch(messages...))
						wantReturned(t, r, err, slices.DeleteFunc(slices.Clone(batch), func(id string) bool { return id != "holder" })...)
					}
					return nil
				}, newFixture().options(middleware.OnlyLatest(), middleware.Concurrency(1))...)
				r, err := h(t.Context(), sqsBatch(message("holder", "")))
				wantReturned(t, r, err)
				if want := []string{"holder", "unlocked", "holder"}; !slices.Equal(ran, want) {
					t.Errorf("ran %q, want %q", ran, want)
				}
			})
		})
	}
}

// TestRecordThatServesOthers lets the records of a batch end in every way: no
// record is acknowledged without a whole run that succeeded.
func TestRecordThatServesOthers(t *testing.T) { // F1, F7, F32, F48
	t.Parallel()
	key := func(c itemChange) lock.Key { return lock.Key{Name: c.name, Event: c.event, Payload: c.does} }
	for name, c := range map[string]struct {
		fifo  bool
		batch []itemChange
		ran   []string
		again []int
	}{
		"the first fails":             {false, []itemChange{{"a", "1", "fails"}, {"a", "2", "ok"}, {"a", "3", "ok"}}, []string{"1", "2"}, []int{0}},
		"the first panics":            {false, []itemChange{{"a", "1", "panics"}, {"a", "2", "ok"}, {"a", "3", "ok"}}, []string{"1", "2"}, []int{0}},
		"the first exits":             {false, []itemChange{{"a", "1", "exits"}, {"a", "2", "ok"}, {"a", "3", "ok"}}, []string{"1", "2"}, []int{0}},
		"the first fails for good":    {false, []itemChange{{"a", "1", "permanent"}, {"a", "2", "ok"}, {"a", "3", "ok"}}, []string{"1", "2"}, []int{0}},
		"all fail":                    {false, []itemChange{{"a", "1", "fails"}, {"a", "2", "fails"}, {"a", "3", "fails"}}, []string{"1", "2", "3"}, []int{0, 1, 2}},
		"the first is completed":      {false, []itemChange{{"a", "done", "ok"}, {"a", "2", "ok"}, {"a", "3", "ok"}}, []string{"2"}, nil},
		"copies":                      {false, []itemChange{{"a", "1", "ok"}, {"a", "1", "ok"}, {"a", "1", "ok"}}, []string{"1"}, nil},
		"another payload":             {false, []itemChange{{"a", "1", "ok"}, {"a", "2", "ok"}, {"a", "1", "other"}, {"a", "3", "ok"}}, []string{"1"}, []int{2}},
		"copies of what fails":        {false, []itemChange{{"a", "1", "fails"}, {"a", "1", "fails"}}, []string{"1", "1"}, []int{0, 1}},
		"no event":                    {false, []itemChange{{"a", "", "ok"}, {"a", "2", "ok"}, {"a", "", "ok"}}, []string{"2"}, []int{0, 2}},
		"no time for another":         {false, []itemChange{{"a", "1", "long"}, {"a", "2", "ok"}, {"b", "3", "ok"}}, []string{"1"}, []int{2}},
		"a group, the first fails":    {true, []itemChange{{"a", "1", "fails"}, {"a", "2", "ok"}, {"a", "3", "ok"}}, []string{"1"}, []int{0, 1, 2}},
		"a group, another name fails": {true, []itemChange{{"a", "1", "ok"}, {"b", "2", "fails"}, {"a", "3", "ok"}}, []string{"1", "2"}, []int{1, 2}},
		"a group of two names":        {true, []itemChange{{"a", "1", "ok"}, {"b", "2", "ok"}, {"a", "3", "fails"}, {"b", "4", "fails"}}, []string{"1", "2"}, nil},
		"a group, another payload":    {true, []itemChange{{"a", "1", "ok"}, {"a", "1", "other"}, {"a", "3", "ok"}}, []string{"1"}, []int{1, 2}},
		"a group, no time left":       {true, []itemChange{{"a", "1", "long"}, {"a", "2", "ok"}, {"b", "3", "ok"}}, []string{"1"}, []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				var ran []string
				opts := f.options(middleware.OnlyLatest(), middleware.Concurrency(1))
				sqsChanges(false)(t.Context(), t, []itemChange{{"a", "done", "ok"}}, key, handlesChanges(&ran), opts...)
				ran = nil
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				again := sqsChanges(c.fifo)(ctx, t, c.batch, key, handlesChanges(&ran), opts...)
				if !slices.Equal(ran, c.ran) || !slices.Equal(again, c.again) {
					t.Errorf("ran %q, want %q; %v come again, want %v", ran, c.ran, again, c.again)
				}
			})
		})
	}
}

// TestBatchBesideAHolder sends a batch while another invocation holds the name:
// one mark serves all of its records, but not a copy of the holder's own event,
// which must come again if the holder fails.
func TestBatchBesideAHolder(t *testing.T) { // F7, F32
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture()
			var ran []string
			within := false
			holder := strings.Repeat("holder", 10) // which a row has as its hash
			holds := sqsChanges(false)(t.Context(), t, []itemChange{{"a", holder, "ok"}}, keyOfChange, func(ctx context.Context, c itemChange) error {
				if ran = append(ran, c.event); within {
					return nil
				}
				within = true
				batch := []itemChange{{"a", "1", "ok"}, {"a", "2", "ok"}, {"a", holder, "ok"}, {"a", "3", "ok"}}
				want := []int{2}
				if fifo {
					want = []int{2, 3} // in their order
				}
				if again := sqsChanges(fifo)(t.Context(), t, batch, keyOfChange, handlesChanges(&ran), f.options(middleware.OnlyLatest())...); !slices.Equal(again, want) {
					t.Errorf("%v come again, want %v", again, want)
				}
				return nil
			}, f.options(middleware.OnlyLatest())...)
			if !slices.Equal(ran, []string{holder, holder}) || len(holds) > 0 || f.faulty.Requests(fault.Mark) != 1 {
				t.Errorf("ran %q after %d marks", ran, f.faulty.Requests(fault.Mark))
			}
		})
	}
}

// TestThrottledMark shows that a record whose mark is throttled goes back to
// the queue of its batch like one whose claim is, without an error.
func TestThrottledMark(t *testing.T) { // F7, F63
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		locker := expect.Value(lock.New(f.faulty.Store, &lock.Options{Logger: noLogger}))(t)
		expect.Must(t, locker.Latest(t.Context(), lock.Key{Name: "a", Event: "holder"}, func(context.Context) error {
			if f.faulty.Requests(fault.Mark) > 0 {
				return nil
			}
			f.faulty.Plan(fault.Mark, fault.Throttle)
			var ran []string
			again := sqsChanges(false)(t.Context(), t, []itemChange{{"a", "1", "ok"}}, keyOfChange, handlesChanges(&ran), f.options(middleware.OnlyLatest())...)
			f.want(t, lock.OutcomeRequeued, lock.OutcomeCoalesced)
			if len(again)+len(ran) > 0 {
				t.Errorf("%v come again, ran %q", again, ran)
			}
			return nil
		}))
	})
}

// TestPermanentButOwed shows that a failure for good of an event on which
// others rely is returned like any other, whatever the handler's form.
func TestPermanentButOwed(t *testing.T) { // F7
	t.Parallel()
	for form, wrap := range rebuilds {
		for _, panics := range []bool{false, true} {
			if panics && form != "records" {
				continue // the panic ends the process
			}
			t.Run(fmt.Sprint(form, ", panics ", panics), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture()
					var failed []error
					opts := f.options()
					if form == "records" {
						opts = append(opts, middleware.OnFailed(func(_ context.Context, fs []*middleware.Failed[events.SQSMessage]) {
							for _, f := range fs {
								failed = append(failed, f.Err)
							}
						}))
					}
					var h func(context.Context, order) error
					runs := 0
					h = wrap(func(context.Context) error {
						if runs++; runs == 1 {
							expect.OK(t, h(t.Context(), order{ID: "other"}))
						}
						err := middleware.Permanent(errors.New("no article 7"))
						if panics {
							panic(err)
						}
						return err
					}, opts...)
					for run, owed := range []bool{true, true, true} {
						silent := fault.None
						if run == 1 { // nobody knows whether others came
							silent = fault.DropBefore
						}
						f.faulty.Always(fault.Release, silent)
						err := h(t.Context(), order{ID: "early"})
						time.Sleep(time.Minute)
						if form == "records" {
							err, failed = failed[0], nil
						}
						if errors.As(err, new(*middleware.PermanentError)) == owed || !strings.Contains(err.Error(), "no article 7") {
							t.Errorf("delivery %d: %v", run, err)
						}
					}
				})
			})
		}
	}
}
