package redelivery

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/defaultlog"
	"github.com/lambdalock/lambdalock/middleware"
)

// longest is how long the requests of a batch that move messages, or bring
// others back, may take at most: the batch is answered without those that SQS
// does not answer.
const longest = 5 * time.Second

// Client is the part of *sqs.Client that [SQS] uses.
type Client interface {
	ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	SendMessage(ctx context.Context, in *sqs.SendMessageInput, opts ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Options are the settings of [SQS]. The zero value is ready for use.
type Options struct {
	// DeadLetterQueue is the URL of the queue to which messages are moved that
	// failed with middleware.Permanent. Empty: they come back like any other, and
	// one warning is logged.
	DeadLetterQueue string
	// HoldTime is how long a lock is usually held, for a process that has not held
	// any itself: at least 1 ms. Zero: messages come back at the end of the lease
	// until it has. Set it if the function's timeout is much longer than that.
	HoldTime time.Duration
	// Logger gets a warning if requests of a batch failed, and a line at level info
	// with the ids of the messages that were moved. Nil: that of package lock.
	Logger *slog.Logger
}

// SQS returns the option for [middleware.EachSQSMessage] and
// [middleware.EachSQSBody]. It takes the place of a middleware.OnFailed before
// it, and one after it takes that of SQS. client is for the Region of the
// queues; o may be nil. SQS panics if client is nil or a setting makes no
// sense.
func SQS(client Client, o *Options) middleware.Option {
	if c := reflect.ValueOf(client); !c.IsValid() || c.Kind() == reflect.Pointer && c.IsNil() {
		panic("lambdalock: redelivery.SQS was given no client: pass an *sqs.Client")
	}
	r := &redeliverer{client: client, holds: holds{reserved: map[string][]int64{}}}
	if o != nil {
		r.Options = *o
	}
	switch {
	case r.HoldTime > 0 && r.HoldTime < time.Millisecond:
		panic(fmt.Sprintf("lambdalock: HoldTime is %v: durations have units, write 20*time.Second for example", r.HoldTime))
	case r.DeadLetterQueue != "" && !strings.Contains(r.DeadLetterQueue, "://"):
		panic(fmt.Sprintf("lambdalock: DeadLetterQueue is %q, but redelivery.SQS needs the URL of the queue", r.DeadLetterQueue))
	case r.HoldTime < 0:
		panic(fmt.Sprintf("lambdalock: HoldTime is negative (%v)", r.HoldTime))
	case r.HoldTime > 0:
		r.holds.add(r.HoldTime)
	}
	r.Logger = cmp.Or(r.Logger, defaultlog.Logger())
	return middleware.Group(middleware.Observe(r.holds.observe), middleware.OnFailed(r.redeliver))
}

// redeliverer is what the invocations of one wrapped handler share.
type redeliverer struct {
	Options
	client  Client
	holds   holds
	missing sync.Once // for the warning that there is no dead-letter queue
}

// failure is a message that failed.
type failure = middleware.Failed[events.SQSMessage]

func (r *redeliverer) redeliver(ctx context.Context, failed []*failure) {
	soon(ctx, func(ctx context.Context) { r.moveAway(ctx, failed) })
	soon(ctx, func(ctx context.Context) { r.bringBack(ctx, failed) })
}

func soon(ctx context.Context, f func(context.Context)) {
	c := clock.From(ctx)
	ctx, cancel := c.WithDeadlineCause(ctx, c.Now().Add(longest), nil)
	defer cancel()
	f(ctx)
}
