// Package emf writes what a wrapper did as metrics of CloudWatch: one line for
// each invocation in the embedded metric format, which CloudWatch Logs turns
// into metrics without a request. TakenOver, Interrupted, Lost and Unlocked are
// written when they occur, on a line of their own with what there is so far:
// the process may die before the end of the invocation.
//
//	lambda.Start(middleware.WithLock(keyfuncs.S3Object, handle, emf.Metrics(nil)))
//
// The metrics are in the namespace lambdalock with the dimension service. Those
// in milliseconds have a value for each lock:
//
//	AcquireTime     how long it took to acquire the lock, with its wait
//	Waited          how long a claim waited that did wait
//	HoldTime        how long the lock was held, however it ended
//
// The others count:
//
//	Completed       locks that ended and completed an event
//	Released        locks that were released without completing an event
//	Duplicates      events that were completed before
//	InProgress      events that another invocation is handling
//	Contended       events whose lock is held for another event
//	Coalesced       events for which the holder runs once more
//	Stale           events that are older than a completed one
//	Mismatched      events that came before with another payload
//	Interrupted     events about which OnInterrupted decided
//	Refused         events without a key, or with too little time
//	TakenOver       locks acquired from a holder that died
//	Lost            losses of a lease that its heartbeat or its end noticed
//	CompleteFailed  events that succeeded but could not be completed
//	Forgotten       completions for which older events were forgotten too soon
//	Unlocked        handlers that ran without a lock because of FailOpen
//	StoreFailed     requests that the store failed, after all attempts
//	StoreRequests   requests to the store
//	HandlerFailed   records of a batch whose handler failed
//	NotBegun        records of a batch that were returned without being handled
//	Overdue         records whose handler went on after its context had ended
//
// To tell failures that are [middleware.Permanent] or [middleware.Unknown] from
// others, count with [middleware.Observe], which is told their Err.
//
// A line has only the metrics that are not zero, and there is no line if all
// are. Of more than 100 times, 100 evenly spaced quantiles are written: a
// metric of CloudWatch has no more values on one line.
//
// Each line also has the properties function, version, request, cold_start,
// tenant and contended, which cost nothing and can be searched with Logs
// Insights. contended is the digest of the key that was contended most: it is
// the one that "lambdalock show" and the log lines have.
//
// CloudWatch reads whole lines: what the program prints to standard output
// before must end in a newline, or the metrics of the next line are lost.
//
// No logger changes a line. If the function's application log level is WARN,
// ERROR or FATAL, Lambda drops lines without a level: then a line says that it
// has this one, in the properties level and timestamp.
//
// [OldestHeld] writes another one, about all locks of a store. Alarms on both
// are in https://github.com/lambdalock/lambdalock/blob/main/infra/README.md#the-alarms.
//
// Sources:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Dimension.html
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
package emf

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/defaultlog"
	"github.com/lambdalock/lambdalock/middleware"
)

// namespace is the CloudWatch namespace of the metrics.
const namespace = "lambdalock"

// Options changes what [Metrics] writes. The zero value and a nil pointer mean
// the defaults.
type Options struct {
	// Service is the value of the dimension service. Every value is a set of
	// metrics that CloudWatch bills. Empty: the namespace of the locks, which is
	// the name of the function unless you set another; or "unknown" if that is
	// empty. Only the first 1,024 characters count.
	Service string
	// HideContended leaves out the digest of the contended key, by which anyone who
	// guesses the key can tell that it was contended.
	HideContended bool
	// Output gets each line with one Write, whose errors are ignored. It must be
	// safe for concurrent use. Nil: os.Stdout, from which Lambda takes it to
	// CloudWatch Logs.
	Output io.Writer
}

// Metrics returns the option that writes the lines of each invocation. The
// outcomes of a wrapper inside another one are in the outer one's line, so give
// it to both: the inner one writes lines only where it is alone.
func Metrics(o *Options) middleware.Option { return middleware.Metrics(newWriter(o).write) }

type writer struct {
	Options
	level string // that a line must have, or Lambda drops it; empty: none
}

func newWriter(o *Options) *writer {
	w := &writer{level: logLevel()}
	if o != nil {
		w.Options = *o
	}
	if w.Output == nil {
		w.Output = os.Stdout
	}
	return w
}

// logLevel returns the function's log level if Lambda drops lines without a
// level because of it, which count as INFO.
func logLevel() string {
	if defaultlog.DropsPlain() {
		return os.Getenv("AWS_LAMBDA_LOG_LEVEL")
	}
	return ""
}

// warm is set by the first invocation of the process.
var warm atomic.Bool

func (w *writer) write(ctx context.Context, t middleware.Totals) {
	cold := !warm.Swap(true)
	l := newLine(&t)
	if len(l.metrics) == 0 {
		return
	}
	w.begin(l, t.Namespace, clock.From(ctx).Now())
	l.property("function", lambdacontext.FunctionName)
	l.property("version", lambdacontext.FunctionVersion)
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		l.property("request", lc.AwsRequestID)
		l.property("tenant", lc.TenantID)
	}
	if cold {
		l.coldStart = true
	}
	if !w.HideContended {
		l.property("contended", mostContended(t.Contended))
	}
	_, _ = w.Output.Write(l.encode()) // no one to tell
}

// begin says whose line it is, and of when.
func (w *writer) begin(l *line, service string, at time.Time) {
	l.service, l.at = dimension(cmp.Or(w.Service, service, "unknown")), at
	if w.level != "" {
		l.property("level", w.level)
		l.property("timestamp", at.UTC().Format(time.RFC3339Nano)) // without it, the level does not count
	}
}

// longestDimension is how many characters CloudWatch takes. It would drop all
// metrics of a longer one.
const longestDimension = 1024

// dimension returns a text as CloudWatch accepts it: printable ASCII, not
// beginning with a colon, and not too long.
func dimension(text string) string {
	if strings.TrimSpace(text) == "" {
		return "unknown"
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	if text[0] == ':' {
		text = "?" + text[1:]
	}
	return text[:min(len(text), longestDimension)]
}

// mostContended returns the digest that was refused most often, the smallest of
// them if there are several, or "".
func mostContended(refusals map[string]int) string {
	most := ""
	for digest, n := range refusals {
		if before := refusals[most]; n > before || n == before && digest < most {
			most = digest
		}
	}
	return most
}
