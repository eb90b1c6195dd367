package middleware_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
)

// What the real one has, in which every surge is a part of some size: all but
// the times and the batches grows with the size.
const (
	eventsPerSecond = 100_000
	namesInAll      = 1_000_000
	partitionRate   = 1000
	// inFlight is how many messages a queue has with its consumers at a time, see
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html.
	inFlight = 120_000
	// An event source mapping begins with 5 invocations at a time and adds 300 per
	// minute, up to 1,250. That is slower than Lambda adds environments: 1,000 in
	// 10 s for each function. See
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html and
	// https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html.
	firstInvocations     = 5
	invocationsPerMinute = 300
	mostInvocations      = 1250
)

// surge is the load of a standard queue that gets eventsPerSecond for a time,
// with the locks in a table that has limits.
type surge struct {
	load
	size       float64       // of the real one
	lasts      time.Duration // for which messages are sent
	throughput float64       // of the table at first, in writes per second
	splits     time.Duration // of its partitions
	atATime    int           // invocations at most; zero: mostInvocations
	ready      bool          // all pollers are there from the beginning
}

func (s *surge) part(of float64) int { return max(1, int(of*s.size+0.5)) }

func (s *surge) run(t *testing.T) {
	t.Helper()
	names, partitions := rand.New(rand.NewPCG(1, 1)), s.part(s.throughput/partitionRate)
	s.table = &fault.Limited{Partitions: &fault.Partitions{
		Rate: s.throughput * s.size / float64(partitions), First: partitions, Splits: s.splits,
	}}
	s.messages, s.flight = int(eventsPerSecond*s.size*s.lasts.Seconds()), s.part(inFlight)
	s.sent = func(since time.Duration) int { return int(eventsPerSecond * s.size * since.Seconds()) }
	s.message = func(i int) events.SQSMessage {
		return message(fmt.Sprint(i), fmt.Sprint("name ", names.IntN(s.part(namesInAll))))
	}
	s.key = func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
		return lock.Key{Name: m.Body, Event: m.MessageId}, nil
	}
	s.environments = s.part(float64(cmp.Or(s.atATime, mostInvocations)))
	s.begins = func(i int) time.Duration {
		if added := (float64(i)+0.5)/s.size - firstInvocations; !s.ready { // half of those that it stands for
			return time.Duration(added / invocationsPerMinute * float64(time.Minute))
		}
		return 0
	}
	s.load.run(t)
	if len(s.completed) == 0 {
		t.Fatal("nothing was completed")
	}
}

// drained returns after how long 99.9 % of what was completed was.
func (s *surge) drained() time.Duration { return s.completed[len(s.completed)*999/1000] }

// line returns a line of the table in BENCHMARKS.md, with prices of us-east-1:
// of a write to DynamoDB, and of an invocation and a second of a function with
// 128 MB on Arm.
func (s *surge) line(name string) string {
	const write, invocation, second = 0.625e-6, 0.2e-6, 0.0000133334 / 8
	n := float64(s.messages)
	sent, accepted := s.table.Requests()
	inTime, _ := slices.BinarySearch(s.completed, s.lasts)
	function := float64(s.invocations)*invocation + s.busy.Seconds()*second
	return fmt.Sprintf("| %s | %.1f %% | %v | %.2f | %.2f | %.2f %% | %.2f %% | $%.2f + $%.2f |", name, 100*float64(inTime)/n, s.drained().Round(time.Second),
		float64(sent-accepted)/n, float64(sent)/n, 100*float64(s.again)/n, 100*float64(s.dead)/n, 1e6/n*float64(accepted)*write, 1e6/n*function)
}
