package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const (
	thumbnails = "arn:aws:lambda:eu-west-1:123456789012:function:thumbnails"
	noDLQ      = "-"
)

// failedEvent puts the event of an invocation that failed into the queue: with
// a function into its failure destination, and without one into a dead-letter
// queue.
func failedEvent(f *sqstest.SQS, id, function, event string) *sqstest.Message {
	body := event
	if function != "" {
		body = fmt.Sprintf(`{"version":"1.0","requestContext":{"requestId":%q,"functionArn":%q,"condition":"RetriesExhausted","approximateInvokeCount":3},"requestPayload":%s,"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":null}`, id, function, event)
	}
	m := f.Put("dlq", "", "m-"+id, "", body)
	delete(m.Attributes, "DeadLetterQueueSourceArn")
	if function == "" {
		m.MessageAttributes = map[string]types.MessageAttributeValue{
			"RequestID":    {DataType: aws.String("String"), StringValue: &id},
			"ErrorCode":    {DataType: aws.String("Number"), StringValue: aws.String("200")},
			"ErrorMessage": {DataType: aws.String("String"), StringValue: aws.String("no such picture")},
		}
	}
	return m
}

// uploaded is the event of an upload of each key.
func uploaded(keys ...string) string {
	var records []string
	for _, key := range keys {
		records = append(records, fmt.Sprintf(`{ "eventSource":"aws:s3", "eventName":"ObjectCreated:Put", "s3":{"bucket":{"name":"b"},"object":{"key":%q,"sequencer":"0055"},"x":1.0e3}}`, key))
	}
	return `{"Records":[` + strings.Join(records, ",") + `]}`
}

// TestDecideAsynchronous: what becomes of the message of an asynchronous
// invocation that failed, and which function gets its event. O5
func TestDecideAsynchronous(t *testing.T) {
	t.Parallel()
	s3 := func(key, event string) lock.Key { return lock.Key{Name: "s3/b/" + key, Event: event} }
	latest := s3("k", "0055")
	latest.Order = "s0055"
	for name, c := range map[string]struct {
		from             string // function in the message; empty: a dead-letter queue
		event            string // by default an upload of k
		asked, queue     string // function, and its dead-letter queue, by default this one
		key, name, given string
		unknown          bool
		rows             []lock.Key // completed
		held             lock.Key
		action, to, why  string
	}{
		"failure destination":               {from: thumbnails + ":prod", rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":prod", why: "not remembered"},
		"failure destination, unqualified":  {from: thumbnails + ":$LATEST", asked: thumbnails, rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":$LATEST"},
		"failure destination, of an alias":  {from: thumbnails + ":prod", asked: thumbnails, rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":prod"},
		"the alias that was asked for":      {from: thumbnails + ":prod", asked: thumbnails + ":prod", rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":prod"},
		"another alias":                     {from: thumbnails + ":$LATEST", asked: thumbnails + ":prod", unknown: true, rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "an asynchronous invocation of " + thumbnails + ":$LATEST, and --function names thumbnails:prod"},
		"another function":                  {from: thumbnails + "2:prod", asked: thumbnails, unknown: true, rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "--function names thumbnails"},
		"another account":                   {from: strings.Replace(thumbnails, "1234", "4321", 1), asked: thumbnails, action: Leave, why: "--function names thumbnails"},
		"completed":                         {from: thumbnails, rows: []lock.Key{s3("k", "0055")}, action: Delete, why: "completed, and remembered"},
		"held":                              {from: thumbnails, held: s3("k", "0044"), action: Leave, why: "held by another event"},
		"stale":                             {from: thumbnails, rows: []lock.Key{{Name: "s3/b/k", Event: "0066", Order: "s0066"}}, action: Leave, why: "stale"},
		"completed, with an order":          {from: thumbnails, rows: []lock.Key{latest}, action: Delete, why: "completed"},
		"no row":                            {from: thumbnails, action: Leave, why: "there is no row"},
		"no row, invoked nevertheless":      {from: thumbnails, unknown: true, action: Invoke, to: thumbnails},
		"dead-letter queue":                 {asked: thumbnails, rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails},
		"dead-letter queue, of an alias":    {asked: thumbnails + ":prod", rows: []lock.Key{s3("k", "0044")}, action: Invoke, to: thumbnails + ":prod"},
		"dead-letter queue, no function":    {rows: []lock.Key{s3("k", "0044")}, action: Leave, why: "give the --function whose dead-letter queue this is"},
		"dead-letter queue, completed":      {rows: []lock.Key{s3("k", "0055")}, action: Delete},
		"another dead-letter queue":         {asked: thumbnails, queue: "arn:other", unknown: true, rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "the dead-letter queue of thumbnails is another one: arn:other"},
		"no dead-letter queue":              {asked: thumbnails, queue: noDLQ, unknown: true, action: Leave, why: "it has none"},
		"several records":                   {from: thumbnails, event: uploaded("k", "l"), rows: []lock.Key{s3("k", "0055"), s3("l", "0044")}, action: Invoke, to: thumbnails},
		"several records, completed":        {from: thumbnails, event: uploaded("k", "l"), rows: []lock.Key{s3("k", "0055"), s3("l", "0055")}, action: Delete},
		"several records, one without row":  {from: thumbnails, event: uploaded("k", "l"), rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "there is no row"},
		"several records, one held":         {from: thumbnails, event: uploaded("m", "k", "l"), unknown: true, rows: []lock.Key{s3("l", "0055")}, held: s3("k", "0044"), action: Leave, why: "held"},
		"key function":                      {from: thumbnails, key: "S3Object", rows: []lock.Key{s3("k", "0055")}, action: Delete},
		"key function of a record":          {from: thumbnails, key: "S3LatestRecord", rows: []lock.Key{s3("k", "0055")}, action: Delete},
		"key function of a queue":           {from: thumbnails, key: "SQSMessage", rows: []lock.Key{s3("k", "0055")}, action: Leave, why: "SQSMessage is not a key function for it"},
		"own key, completed":                {from: thumbnails, event: placed, name: "{{.customer}}", given: "{{.order}}", rows: []lock.Key{{Name: "jane", Event: "12345678901234567890"}}, action: Delete},
		"own key, not completed":            {asked: thumbnails, event: placed, name: "{{.customer}}", given: "{{.order}}", rows: []lock.Key{{Name: "jane", Event: "1"}}, action: Invoke, to: thumbnails},
		"own key, id of the message":        {from: thumbnails, event: placed, name: "{{.customer}}", rows: []lock.Key{{Name: "jane", Event: "m-1"}}, action: Leave, why: "give --event, too"},
		"event of no source":                {from: thumbnails, event: `{"a":1}`, action: Leave, why: "not an event of a source that has a key function"},
		"event that is null":                {from: thumbnails, event: `null`, unknown: true, action: Invoke, to: thumbnails},
		"text":                              {asked: thumbnails, event: `hello`, unknown: true, action: Leave, why: "its event is not JSON"},
		"event that is too large":           {from: thumbnails, event: `"` + strings.Repeat("x", largestEvent-1) + `"`, unknown: true, action: Leave, why: "its event has 1048577 bytes, and an asynchronous invocation takes at most 1048576"},
		"as large as may be":                {from: thumbnails, event: `"` + strings.Repeat("x", largestEvent-2) + `"`, unknown: true, action: Invoke, to: thumbnails},
		"a function that is not a function": {from: "thumbnails", unknown: true, action: Leave, why: "is not an asynchronous invocation that failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store := sqstest.New(t, "dlq"), memstore.New()
				for _, k := range c.rows {
					rowtest.Complete(t, store, k, nil)
				}
				if c.held.Name != "" {
					rowtest.Acquire(t, store, "f", time.Hour, c.held)
				}
				if c.event == "" {
					c.event = uploaded("k")
				}
				failedEvent(f, "1", c.from, c.event)
				j := &Judge{Store: store, Namespace: "orders", Function: c.key, Unknown: c.unknown, Functions: Functions{ARN: c.asked, DeadLetterQueue: sqstest.ARNPrefix + "dlq"}}
				switch c.queue {
				case "":
				case noDLQ:
					j.Functions.DeadLetterQueue = ""
				default:
					j.Functions.DeadLetterQueue = c.queue
				}
				if c.name != "" {
					j.Name, _ = Template(c.name)
				}
				if c.given != "" {
					j.Event, _ = Template(c.given)
				}
				q, err := open(t, f, "dlq")
				if err != nil {
					t.Fatal(err)
				}
				round, err := NewRun(q, j).Next(t.Context())
				if err != nil || len(round) != 1 {
					t.Fatalf("%+v, %v", round, err)
				}
				if d := round[0]; d.Action != c.action || !strings.Contains(d.Why, c.why) || d.To != c.to {
					t.Errorf("got %+v, want %s to %q because of %q", d, c.action, c.to, c.why)
				}
			})
		})
	}
}

// TestNowhere: a message of neither kind stays, and says what to do.
func TestNowhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"failure destination, Kinesis":  {`{"requestContext":{"functionArn":"f"},"KinesisBatchInfo":{"shardId":"1"}}`, "read them from the stream by their sequence numbers"},
		"failure destination, DynamoDB": {`{"requestContext":{"functionArn":"f"},"DDBStreamBatchInfo":{"shardId":"1"}}`, "read them from the stream by their sequence numbers"},
		"success destination":           {`{"requestContext":{"requestId":"1","functionArn":"` + thumbnails + `","condition":"Success"},"requestPayload":{}}`, "that succeeded: this is a destination for successes"},
		"no event":                      {`{"requestContext":{"requestId":"1","functionArn":"` + thumbnails + `","condition":"RetriesExhausted"}}`, "give --to"},
		"other case":                    {`{"requestContext":{"functionArn":"` + thumbnails + `"},"RequestPayload":{}}`, "give --to"},
		"HTTP":                          {`{"requestContext":{"http":{"method":"GET"}},"version":"2.0"}`, "give --to"},
		"another":                       {upload, "give --to"},
		"no JSON":                       {"hello", "give --to"},
		"no object":                     {`[{"requestPayload":{}}]`, "give --to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := sqstest.New(t, "dlq")
			delete(f.Put("dlq", "", "m1", "", c.body).Attributes, "DeadLetterQueueSourceArn")
			q, err := open(t, f, "dlq")
			if err != nil {
				t.Fatal(err)
			}
			round, err := NewRun(q, &Judge{Store: memstore.New(), Unknown: true}).Next(t.Context())
			if err != nil || len(round) != 1 || round[0].Action != Leave || !strings.Contains(round[0].Why, c.want) {
				t.Errorf("%+v, %v", round, err)
			}
		})
	}
}

// eventsOf has the bytes of events as Lambda took them, each once.
func eventsOf(f *sqstest.SQS) (once []string, twice int) {
	for _, i := range f.Invoked {
		if once = append(once, i.Event); i.Function != thumbnails+":prod" {
			once = append(once, "for "+i.Function)
		}
	}
	n := len(once)
	slices.Sort(once)
	once = slices.Compact(once)
	return once, n - len(once)
}

// TestInvokeEveryCrash lets the command die before and after each of its
// requests, and runs it again: every event that was not completed is taken,
// with the bytes that the queue has, and at most ten are taken twice. F1
func TestInvokeEveryCrash(t *testing.T) {
	t.Parallel()
	for crash := range 200 {
		died := true
		t.Run(fmt.Sprintf("request %d", crash), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { died = testInvokeCrash(t, crash) })
		})
		if !died {
			if crash < 40 {
				t.Errorf("there are only %d moments to die at", crash)
			}
			break
		}
	}
}

func testInvokeCrash(t *testing.T, crash int) bool {
	f, store := sqstest.New(t, "dlq"), memstore.New()
	var want []string
	for i := range 24 {
		key := fmt.Sprintf("k%02d", i)
		function, event := thumbnails+":prod", "0055"
		if i%2 == 0 {
			function = ""
		}
		if i%3 > 0 {
			event = "0044"
			want = append(want, uploaded(key))
		}
		failedEvent(f, fmt.Sprint("r", i), function, uploaded(key))
		rowtest.Complete(t, store, lock.Key{Name: "s3/b/" + key, Event: event}, nil)
	}
	j := &Judge{Store: store, Namespace: "orders", Functions: Functions{Client: f, ARN: thumbnails + ":prod", DeadLetterQueue: sqstest.ARNPrefix + "dlq"}}
	at := 0
	f.Fault = func(string, bool) error {
		if at++; at > crash {
			return errCrash
		}
		return nil
	}
	_, _ = redrive(t, f, "dlq", j)
	died := at > crash
	f.Fault = func(string, bool) error { return nil }
	time.Sleep(hide)
	if _, err := redrive(t, f, "dlq", j); err != nil {
		t.Fatal(err)
	}
	if got, twice := eventsOf(f); !slices.Equal(got, want) || twice > batch {
		t.Errorf("%d were taken twice; took %q, want %q", twice, got, want)
	}
	if left := f.Bodies("dlq"); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	return died
}

// TestInvokeEnds: an event that fails again at once comes back as another
// message, and is not invoked again by the same run.
func TestInvokeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := sqstest.New(t, "dlq")
		for i := range 30 {
			failedEvent(f, fmt.Sprint("r", i), thumbnails, fmt.Sprint(i))
		}
		back := 0
		f.Fault = func(operation string, applied bool) error {
			if operation == "DeleteMessageBatch" && applied {
				for ; back < min(len(f.Invoked), 60); back++ {
					failedEvent(f, f.Invoked[back].RequestID, thumbnails, f.Invoked[back].Event)
				}
			}
			return nil
		}
		all, err := redrive(t, f, "dlq", &Judge{Store: memstore.New(), Unknown: true, Functions: Functions{Client: f}})
		if err != nil || len(all) != 30 || len(f.Invoked) != 30 || len(f.Bodies("dlq")) != 30 || f.Hidden("dlq") > 0 {
			t.Errorf("%d messages, %d invocations, %d are here, %d invisible, error %v", len(all), len(f.Invoked), len(f.Bodies("dlq")), f.Hidden("dlq"), err)
		}
	})
}

// TestInvokeFails: what Lambda refuses stays, one after the other or all of it,
// and what it took is deleted, whatever came in between.
func TestInvokeFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault    func(cancel context.CancelCauseFunc, number int, applied bool) error
		err      string // empty: none
		left     int    // of 30
		invoked  int
		perhaps  int
		requests int // to invoke
	}{
		"nothing": {fault: func(context.CancelCauseFunc, int, bool) error { return nil }, invoked: 30, requests: 30},
		"denied": {fault: func(_ context.CancelCauseFunc, n int, _ bool) error {
			if n == 6 {
				return sqstest.Denied("lambda:InvokeFunction")
			}
			return nil
		}, err: "gave up, because a permission is missing: not invoked: function thumbnails", left: 25, invoked: 5, requests: 6},
		"throttled": {fault: func(context.CancelCauseFunc, int, bool) error {
			return &smithy.GenericAPIError{Code: "TooManyRequestsException", Fault: smithy.FaultClient}
		}, err: "gave up after 10 failures, the last one: not invoked: function thumbnails", left: 30, requests: 10},
		"every other is too large": {fault: func(_ context.CancelCauseFunc, n int, applied bool) error {
			if n%2 == 0 && !applied {
				return &smithy.GenericAPIError{Code: "RequestTooLargeException", Fault: smithy.FaultClient}
			}
			return nil
		}, left: 15, invoked: 15, requests: 30},
		"an answer is lost": {fault: func(_ context.CancelCauseFunc, n int, applied bool) error {
			if n == 4 && applied {
				return errors.New("connection reset by peer")
			}
			return nil
		}, left: 1, invoked: 30, perhaps: 1, requests: 30},
		"interrupted": {fault: func(cancel context.CancelCauseFunc, n int, applied bool) error {
			if n == 7 && applied {
				cancel(errCrash)
			}
			return nil
		}, err: errCrash.Error(), left: 23, invoked: 7, requests: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := sqstest.New(t, "dlq")
				for i := range 30 {
					failedEvent(f, fmt.Sprint("r", i), thumbnails, fmt.Sprint(i))
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				f.Fault = func(operation string, applied bool) error {
					if operation != "Invoke" {
						return nil
					}
					return c.fault(cancel, f.Requests["Invoke"], applied)
				}
				q, err := open(t, f, "dlq")
				if err != nil {
					t.Fatal(err)
				}
				r := NewRun(q, &Judge{Store: memstore.New(), Unknown: true, Functions: Functions{Client: f}})
				round, err := r.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				err = r.Do(ctx, round)
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				perhaps := 0
				for i := range round {
					if round[i].Sent == Perhaps {
						perhaps++
					}
					if d := &round[i]; d.Done != (d.Sent == Yes) || d.Sent == Perhaps && !strings.HasPrefix(d.Error, "perhaps invoked, and still in the dead-letter queue: ") {
						t.Errorf("%+v", d)
					}
				}
				if left, n := len(f.Bodies("dlq")), f.Requests["Invoke"]; left != c.left || len(f.Invoked) != c.invoked || perhaps != c.perhaps || n != c.requests {
					t.Errorf("%d are left, %d invoked, %d perhaps, with %d requests", left, len(f.Invoked), perhaps, n)
				}
			})
		})
	}
}
