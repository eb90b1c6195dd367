package redelivery_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/redelivery"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// changer keeps the visibility timeouts that are set.
type changer struct {
	sender
	mu       sync.Mutex
	timeouts []string // queue, receipt handle and seconds
	refuses  string   // receipt handles that begin so
}

func (c *changer) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := refusesChange(in); err != nil {
		return nil, err
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		c.timeouts = append(c.timeouts, fmt.Sprint(*in.QueueUrl, " ", *e.ReceiptHandle, " ", e.VisibilityTimeout))
		if c.refuses != "" && strings.HasPrefix(*e.ReceiptHandle, c.refuses) {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("ReceiptHandleIsInvalid"), Message: aws.String("no such handle")})
		}
	}
	return out, nil
}

// TestVisibilityTimeout shows what is asked of SQS for a message whose handler
// found a lock inside held, or whose own name was held.
func TestVisibilityTimeout(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, c := range map[string]struct {
		since, until time.Duration // of the holder, from now
		known        time.Duration // how long locks are held; zero: nobody knows
		least        time.Duration // HoldAtLeast of the message's own name
		received     string
		arn          string
		want         string // "": nothing
		owed         bool
		own          bool // its own name is held, not a lock inside
		unlocked     bool // its handler runs without a lock
		open         bool // the same, because of FailOpen
	}{
		"end of the lease":        {since: -hour, until: 90 * time.Second, want: url + " r 90"},
		"rounded up":              {since: -hour, until: 89001 * time.Millisecond, want: url + " r 90"},
		"ended":                   {since: -hour, until: -time.Second, want: url + " r 1"},
		"long lease":              {since: -hour, until: 30 * hour, want: url + " r 36000"},
		"end unknown":             {since: -hour, until: -1 << 62},
		"estimate":                {since: -time.Second, until: hour, known: 10 * time.Second, want: url + " r 10"},
		"estimate beyond its end": {since: -time.Second, until: 5 * time.Second, known: 10 * time.Second, want: url + " r 5"},
		"begin unknown":           {since: -1 << 62, until: 90 * time.Second, known: 10 * time.Second, want: url + " r 90"},
		"clock ahead":             {since: hour, until: hour, known: 10 * time.Second, want: url + " r 11"},
		"clock ahead, fourth":     {since: hour, until: 90 * time.Second, received: "4"},
		"clock ahead, least hold": {own: true, since: hour, until: 2 * hour, known: 10 * time.Second, least: time.Minute, want: url + " r 61"},
		"third time":              {since: -hour, until: 90 * time.Second, received: "3", want: url + " r 90"},
		"fourth time":             {since: -hour, until: 90 * time.Second, received: "4"},
		"owed":                    {owed: true, received: "3", want: url + " r 1"},
		"owed, fourth time":       {owed: true, received: "4"},
		"least hold":              {own: true, since: -time.Second, until: hour, known: 10 * time.Second, least: time.Minute, want: url + " r 60"},
		"least hold, fourth time": {own: true, since: -time.Second, until: hour, known: 10 * time.Second, least: time.Minute, received: "4", want: url + " r 60"},
		"least hold has passed":   {own: true, since: -hour, until: 90 * time.Second, least: time.Minute, received: "4"},
		"inside a cooldown":       {since: -30 * time.Second, until: hour, known: 40 * time.Second, least: time.Minute, want: url + " r 61"},
		"inside, later than that": {since: -time.Second, until: hour, known: 2 * time.Minute, least: time.Minute, want: url + " r 120"},
		"inside, fourth time":     {since: -time.Second, until: hour, known: 10 * time.Second, least: time.Minute, received: "4"},
		"inside no lock":          {unlocked: true, since: -time.Second, until: 2 * time.Second, least: hour, want: url + " r 2"},
		"inside, failed open":     {open: true, since: -time.Second, until: 20 * time.Second, least: hour, want: url + " r 19"}, // the claim was tried for 1 to 2 s
		"count that is none":      {since: -hour, until: 90 * time.Second, received: "many", want: url + " r 90"},
		"China":                   {since: -hour, until: 90 * time.Second, arn: "arn:aws-cn:sqs:cn-north-1:123456789012:orders", want: "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders r 90"},
		"Europe's own cloud":      {since: -hour, until: 90 * time.Second, arn: "arn:aws-eusc:sqs:eusc-de-east-1:123456789012:orders", want: "https://sqs.eusc-de-east-1.amazonaws.eu/123456789012/orders r 90"},
		"GovCloud":                {since: -hour, until: 90 * time.Second, arn: "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:orders", want: "https://sqs.us-gov-west-1.amazonaws.com/123456789012/orders r 90"},
		"isolated":                {since: -hour, until: 90 * time.Second, arn: "arn:aws-iso:sqs:us-iso-east-1:123456789012:orders", want: "https://sqs.us-iso-east-1.c2s.ic.gov/123456789012/orders r 90"},
		"isolated, E":             {since: -hour, until: 90 * time.Second, arn: "arn:aws-iso-e:sqs:eu-isoe-west-1:123456789012:orders", want: "https://sqs.eu-isoe-west-1.cloud.adc-e.uk/123456789012/orders r 90"},
		"isolated, F":             {since: -hour, until: 90 * time.Second, arn: "arn:aws-iso-f:sqs:us-isof-south-1:123456789012:orders", want: "https://sqs.us-isof-south-1.csp.hci.ic.gov/123456789012/orders r 90"},
		"a Region to come":        {since: -hour, until: 90 * time.Second, arn: "arn:aws:sqs:eu-north-9:123456789012:orders", want: "https://sqs.eu-north-9.amazonaws.com/123456789012/orders r 90"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				held := &lock.HeldError{Since: time.Now().Add(c.since), Until: time.Now().Add(c.until)}
				if c.since < -hour {
					held.Since = time.Time{}
				}
				if c.until < -hour {
					held.Until = time.Time{}
				}
				failure := error(held)
				if c.owed {
					failure = &invocation.OwedError{Err: errors.New("no time was left")}
				}
				m := message("m", "customer", "")
				store := memstore.New()
				if c.own {
					hold(t, store, m, c.since, c.until)
				}
				client := &changer{}
				key := keyfuncs.SQSMessage
				if c.unlocked {
					key = func(context.Context, events.SQSMessage) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }
				}
				opts := []middleware.Option{middleware.Store(store), middleware.Logger(discard), middleware.HoldAtLeast(c.least), redelivery.SQS(client, &redelivery.Options{HoldTime: c.known})}
				if c.open {
					opts = append(opts, middleware.Store(noAnswers{store}), middleware.FailOpen())
				}
				h := middleware.EachSQSMessage(key, func(context.Context, events.SQSMessage) error {
					return fmt.Errorf("the partner is busy: %w", failure)
				}, opts...)
				m.ReceiptHandle, m.Attributes["ApproximateReceiveCount"] = "r", c.received
				if c.arn != "" {
					m.EventSourceARN = c.arn
				}
				if _, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}); errors.Is(err, failure) == c.own {
					t.Error(err)
				}
				if got := strings.Join(client.timeouts, "; "); got != c.want {
					t.Errorf("asked for %q, want %q", got, c.want)
				}
			})
		})
	}
}

// noAnswers is a store that does not answer.
type noAnswers struct{ driver.Store }

func (noAnswers) Acquire(context.Context, *driver.Claim) (driver.Row, bool, error) {
	return driver.Row{}, false, &driver.Error{Unapplied: true}
}

// hold acquires the name of a message for another process. since and until are
// from now.
func hold(t *testing.T, store *memstore.Store, m events.SQSMessage, since, until time.Duration) {
	t.Helper()
	key := expect.Value(keyfuncs.SQSMessage(t.Context(), m))(t)
	holder := expect.Value(lock.New(store, &lock.Options{Lease: lock.FixedLease(until - since), Logger: discard}))(t)
	expect.Value(holder.Acquire(clock.With(t.Context(), simclock.New(since, 0)), lock.Key{Name: key.Name}))(t)
}

// TestTurns shows that messages of one name come back a turn apart, although
// each met its holder, or its cooldown, at another moment.
func TestTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since []time.Duration // in seconds: for how long each has been held; below zero: in how long its cooldown ends
		want  []int           // in seconds: when each comes back
		least time.Duration   // HoldAtLeast of the message's own name
		// unlocked is whether the handler runs without a lock.
		unlocked bool
	}{
		"one after the other": {since: []time.Duration{5, 9, 1, 0}, want: []int{6, 17, 28, 39}},
		"between others":      {since: []time.Duration{-50, 0, 3, 9, 1}, want: []int{50, 11, 22, 33, 61}},
		"cooldown":            {since: []time.Duration{-60, -60, -60}, want: []int{60, 121, 182}},
		"inside HoldAtLeast":  {since: []time.Duration{-60, -60, -60}, want: []int{121, 182, 243}, least: 2 * time.Minute},
		"inside no lock":      {since: []time.Duration{0, 0, 0}, want: []int{11, 22, 33}, least: 2 * time.Minute, unlocked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := &changer{}
				key := keyfuncs.SQSMessage
				if c.unlocked {
					key = func(context.Context, events.SQSMessage) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }
				}
				h := middleware.EachSQSMessage(key, func(_ context.Context, m events.SQSMessage) error {
					since, err := time.ParseDuration(m.Body)
					held := &lock.HeldError{Since: time.Now().Add(-since), Until: time.Now().Add(time.Hour)}
					if since < 0 {
						held = &lock.HeldError{Since: time.Now(), Until: time.Now().Add(-since), Cooldown: true}
					}
					return cmp.Or[error](held, err)
				}, middleware.Store(memstore.New()), middleware.Logger(discard), middleware.HoldAtLeast(c.least), redelivery.SQS(client, &redelivery.Options{HoldTime: 10 * time.Second}))
				var e events.SQSEvent
				var want []string
				for i, since := range c.since {
					m := message(fmt.Sprint("m", i), "customer", "")
					m.ReceiptHandle, m.Body = fmt.Sprint("r", i), (since * time.Second).String()
					e.Records = append(e.Records, m)
					want = append(want, fmt.Sprint(url, " r", i, " ", c.want[i]))
				}
				_, _ = h(t.Context(), e)
				if slices.Sort(client.timeouts); !slices.Equal(client.timeouts, want) {
					t.Errorf("asked for %q, want %q", client.timeouts, want)
				}
			})
		})
	}
}

// TestRenewedLate shows that a process whose handler once outlived its context,
// so that its lease was renewed, still goes by the end of another's lease.
func TestRenewedLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &changer{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
			if len(client.timeouts) > 0 {
				return nil
			}
			time.Sleep(15 * time.Second)
			return &lock.HeldError{Since: time.Now().Add(-time.Second), Until: time.Now().Add(5 * time.Second)}
		}, middleware.Store(memstore.New()), middleware.Logger(discard), redelivery.SQS(client, &redelivery.Options{HoldTime: time.Minute}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		m := message("m", "customer", "")
		m.ReceiptHandle = "r"
		_, _ = h(ctx, events.SQSEvent{Records: []events.SQSMessage{m}})
		if want := []string{url + " r 5"}; !slices.Equal(client.timeouts, want) {
			t.Errorf("asked for %q, want %q", client.timeouts, want)
		}
	})
}

// TestRefusedEntries shows that the warning counts the messages whose timeout
// was not changed, and says why.
func TestRefusedEntries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ refuses, arn, want string }{
		"an entry":  {"r7", arn, `messages=1 of=25 error="ReceiptHandleIsInvalid: no such handle"`},
		"some":      {"r1", arn, `messages=11 of=25 error="ReceiptHandleIsInvalid: no such handle"`},
		"no queue":  {"", "arn:aws:kinesis:x", `messages=25 of=25 error="the message has the eventSourceARN \"arn:aws:kinesis:x\"`},
		"no source": {"", "", `messages=25 of=25`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			client := &changer{refuses: c.refuses}
			h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
				return &lock.HeldError{Until: time.Now().Add(time.Minute)}
			}, middleware.Store(memstore.New()), middleware.Logger(discard), redelivery.SQS(client, &redelivery.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			var e events.SQSEvent
			for i := range 25 {
				m := message(fmt.Sprint("m", i), "customer", "")
				m.ReceiptHandle, m.EventSourceARN = fmt.Sprint("r", i), c.arn
				e.Records = append(e.Records, m)
			}
			if r, _ := h(t.Context(), e); len(r.BatchItemFailures) != 25 {
				t.Errorf("%d messages are returned", len(r.BatchItemFailures))
			}
			if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) {
				t.Errorf("logged %s, want %s", got, c.want)
			}
		})
	}
}

// TestAnotherWasFaster shows that a message which came back and met another
// holder comes back at any of several times, because others wait as well, and
// one that met the same holder again at one time.
func TestAnotherWasFaster(t *testing.T) {
	t.Parallel()
	var sixteen []string // twice as many turns, because a receive is certain to be lost in another's
	for i := range 16 {
		sixteen = append(sixteen, fmt.Sprint(30+i*31))
	}
	slices.Sort(sixteen)
	for name, c := range map[string]struct {
		since    time.Duration // when the holder began, after the first receive
		least    time.Duration // HoldAtLeast
		received string
		timeouts []string // in seconds, of 200 messages
		last     int      // without timeouts: none is later
	}{
		"same holder":         {since: -time.Second, received: "2", timeouts: []string{"10"}},
		"first receive":       {since: time.Second, received: "1", timeouts: []string{"10"}},
		"another":             {since: time.Second, received: "2", timeouts: []string{"10", "21", "32", "43", "54", "65", "76", "87"}},
		"another, least hold": {since: time.Second, least: 30 * time.Second, received: "2", timeouts: sixteen},
		"no time of receive":  {since: 1 << 62, received: "2", timeouts: []string{"10"}},
		"another, third time": {since: time.Second, received: "3", last: 11 * 64},                              // 64, not the first eight
		"third, long hold":    {since: time.Second, least: 10 * time.Minute, received: "3", last: 11*3600 - 1}, // within what SQS takes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				client := &changer{}
				for range 200 { // each in a process of its own, which knows of no other
					m := message("m", "customer", "")
					store := memstore.New()
					hold(t, store, m, -time.Second, time.Hour)
					h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil },
						middleware.Store(store), middleware.Logger(discard), middleware.HoldAtLeast(c.least), redelivery.SQS(client, &redelivery.Options{HoldTime: 10 * time.Second}))
					m.ReceiptHandle, m.Attributes["ApproximateReceiveCount"] = "r", c.received
					if first := time.Now().Add(-time.Second - c.since); c.since < time.Hour {
						m.Attributes["ApproximateFirstReceiveTimestamp"] = fmt.Sprint(first.UnixMilli())
					}
					_, _ = h(clock.With(t.Context(), q.chance), events.SQSEvent{Records: []events.SQSMessage{m}})
				}
				var got []string
				for _, request := range client.timeouts {
					got = append(got, request[strings.LastIndex(request, " ")+1:])
				}
				slices.Sort(got)
				got = slices.Compact(got)
				if c.timeouts != nil && !slices.Equal(got, c.timeouts) || c.timeouts == nil && (len(got) < 50 || slices.Contains(got, "10") || slices.Contains(got, "87")) {
					t.Errorf("%d timeouts: %q, want %q", len(got), got, c.timeouts)
				}
				for _, seconds := range got {
					if n := expect.Value(strconv.Atoi(seconds))(t); c.timeouts == nil && n > c.last {
						t.Errorf("one comes back after %d s, want %d at most", n, c.last)
					}
				}
			})
		})
	}
}
