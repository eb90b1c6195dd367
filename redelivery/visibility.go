package redelivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock"
)

const (
	// mostEntries is how many messages one request may name.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibilityBatch.html
	mostEntries = 10
	// longestTimeout leaves room below the 12 h that SQS allows, counted from when
	// the message was received, for the time that the batch has taken: up to 90
	// minutes on managed instances, after a batching window of up to five.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
	longestTimeout = 10 * time.Hour
	// mostReceives is up to how many receives a message comes back early. After
	// that the estimates were wrong, and the next receives are what is left before
	// the dead-letter queue: AWS advises a maxReceiveCount of at least 5.
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
	mostReceives = 3
)

// change is a message whose visibility timeout is to be changed.
type change struct {
	message *events.SQSMessage
	back    time.Time // when it should come back; zero: immediately
}

// bringBack changes the visibility timeouts of messages that are held, or whose
// handler has to run once more.
func (r *redeliverer) bringBack(ctx context.Context, failed []*failure) {
	var requests [][]change
	messages := 0
	for _, changes := range r.changes(ctx, failed) {
		messages += len(changes)
		requests = slices.AppendSeq(requests, slices.Chunk(changes, mostEntries))
	}
	refused := 0
	var why error
	for i, err := range each(len(requests), func(i int) error { return r.change(ctx, requests[i]) }) {
		if err == nil {
			continue
		}
		var some *partialError
		if errors.As(err, &some) {
			refused += some.entries
		} else {
			refused += len(requests[i])
		}
		why = err
	}
	if why != nil {
		r.Logger.WarnContext(ctx, "lambdalock: held messages come back after the visibility timeout of their queue, because it could not be changed: is sqs:ChangeMessageVisibility allowed?",
			slog.Int("messages", refused), slog.Int("of", messages), slog.Any("error", why))
	}
}

// changes returns what to change, by the ARN of the queue. A FIFO queue
// delivers no message of a group while another one is in flight, so what is
// behind a message comes back with it:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
func (r *redeliverer) changes(ctx context.Context, failed []*failure) map[string][]change {
	r.holds.forget(clock.From(ctx).Now())
	byQueue := map[string][]change{}
	add := func(m *events.SQSMessage, back time.Time) {
		byQueue[m.EventSourceARN] = append(byQueue[m.EventSourceARN], change{m, back})
	}
	type first struct {
		leads bool // the others follow it
		back  time.Time
	}
	groups := map[string]first{}
	for i, f := range failed {
		m, group := &f.Record, eventkind.FIFOGroup(&f.Record)
		if before, ok := groups[group]; ok && group != "" {
			if before.leads {
				add(m, before.back)
			}
			continue
		}
		var held *lock.HeldError
		var back time.Time
		claim := invocation.FailedClaimOf(ctx, i)
		switch early := receives(m) <= mostReceives; {
		case f.Err == nil:
			groups[group] = first{leads: true}
			continue
		case errors.As(f.Err, &held) && !held.Until.IsZero() && (early || isCool(ctx, held, claim.Began, f.Ended)):
			back = r.holds.back(ctx, held, f, claim)
		case early && isOwed(ctx, f.Err):
			back = f.Ended
		default:
			groups[group] = first{}
			continue
		}
		groups[group] = first{true, back}
		add(m, back)
	}
	return byQueue
}

// isOwed reports whether others rely on another run of a message that failed.
// Under Latest, a record begins only if there is time for it, so a
// *lock.DeadlineError says that it has run.
func isOwed(ctx context.Context, err error) bool {
	return errors.As(err, new(*invocation.OwedError)) || invocation.BatchOf(ctx).Coalesces && errors.As(err, new(*lock.DeadlineError))
}

// receives returns how often the message was received.
func receives(m *events.SQSMessage) int {
	n, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	return n
}

// wasBefore reports whether the message was received for the first time before
// then.
func wasBefore(m *events.SQSMessage, then time.Time) bool {
	first, err := strconv.ParseInt(m.Attributes["ApproximateFirstReceiveTimestamp"], 10, 64) // in ms
	return err == nil && time.UnixMilli(first).Before(then)
}

// partialError says that SQS refused some entries of a request.
type partialError struct {
	entries int
	first   types.BatchResultErrorEntry
}

func (e *partialError) Error() string {
	return fmt.Sprintf("%s: %s", aws.ToString(e.first.Code), aws.ToString(e.first.Message))
}

// change changes the visibility timeouts of up to mostEntries messages of one
// queue.
func (r *redeliverer) change(ctx context.Context, changes []change) error {
	host, path, err := parseARN(changes[0].message.EventSourceARN)
	if err != nil {
		return err
	}
	now := clock.Wall(clock.From(ctx))
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(host + path)}
	for i, c := range changes {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &c.message.ReceiptHandle, VisibilityTimeout: timeout(c.back, now),
		})
	}
	out, err := r.client.ChangeMessageVisibilityBatch(ctx, in)
	if err == nil && len(out.Failed) > 0 {
		err = &partialError{len(out.Failed), out.Failed[0]}
	}
	return err
}

// timeout returns the visibility timeout in seconds with which a message comes
// back at that time or up to a second later. If that time is over, it is one
// second, so that a message cannot use up its receives in a moment.
func timeout(back, now time.Time) int32 {
	if back.IsZero() {
		return 0
	}
	left := min(max(back.Sub(now), time.Second), longestTimeout)
	return int32(math.Ceil(left.Seconds()))
}

// parseARN returns the two parts of the URL of a queue, which the request for a
// message needs and the message does not have. The SDK knows the domain of each
// partition.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html
func parseARN(arn string) (host, path string, err error) {
	parts := strings.Split(arn, ":") // arn:aws:sqs:eu-central-1:123456789012:orders
	if len(parts) != 6 || parts[2] != "sqs" {
		return "", "", fmt.Errorf("the message has the eventSourceARN %q, which is not that of a queue", arn)
	}
	endpoint, err := sqs.NewDefaultEndpointResolverV2().ResolveEndpoint(context.Background(), sqs.EndpointParameters{Region: &parts[3]})
	if err != nil {
		return "", "", fmt.Errorf("the message has the eventSourceARN %q: %w", arn, err)
	}
	return endpoint.URI.Scheme + "://" + endpoint.URI.Host, "/" + parts[4] + "/" + parts[5], nil
}
