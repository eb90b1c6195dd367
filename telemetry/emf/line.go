package emf

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// counts are the metrics without a unit of time, in the order in which they are
// written.
var counts = []struct {
	name string
	of   func(*middleware.Totals) int
}{
	{"Completed", func(t *middleware.Totals) int { return t.Completed }},
	{"Released", func(t *middleware.Totals) int { return t.Outcomes[lock.OutcomeReleased] - t.Completed }},
	{"Duplicates", outcome(lock.OutcomeAlreadyCompleted)},
	{"InProgress", func(t *middleware.Totals) int { return t.InProgress }},
	{"Contended", func(t *middleware.Totals) int { return t.Outcomes[lock.OutcomeHeld] - t.InProgress }},
	{"Coalesced", outcome(lock.OutcomeCoalesced)},
	{"Stale", outcome(lock.OutcomeStale)},
	{"Mismatched", outcome(lock.OutcomeMismatch)},
	{"Interrupted", outcome(lock.OutcomeInterrupted)},
	{"Refused", outcome(lock.OutcomeRefused)},
	{"TakenOver", outcome(lock.OutcomeTakenOver)},
	{"Lost", outcome(lock.OutcomeLost)},
	{"CompleteFailed", outcome(lock.OutcomeCompleteFailed)},
	{"Forgotten", outcome(lock.OutcomeForgotten)},
	{"Unlocked", outcome(middleware.OutcomeUnlocked)},
	{"StoreFailed", outcome(lock.OutcomeStoreFailed)},
	{"HandlerFailed", outcome(middleware.OutcomeHandlerFailed)},
	{"NotBegun", outcome(middleware.OutcomeNotBegun)},
	{"Overdue", outcome(middleware.OutcomeOverdue)},
	{"StoreRequests", func(t *middleware.Totals) int { return t.Requests }},
}

func outcome(o lock.Outcome) func(*middleware.Totals) int {
	return func(t *middleware.Totals) int { return t.Outcomes[o] }
}

// line is a document of the embedded metric format.
type line struct {
	at         time.Time
	service    string
	metrics    []byte // definitions, each followed by a comma
	values     []byte // members, each after a comma
	properties []byte // members, each after a comma
	coldStart  bool
}

// newLine returns the line with the metrics that are not zero.
func newLine(t *middleware.Totals) *line {
	l := &line{metrics: make([]byte, 0, 512), values: make([]byte, 0, 512)}
	for _, c := range counts {
		if n := c.of(t); n != 0 {
			l.define(c.name, "Count")
			l.values = strconv.AppendInt(l.values, int64(n), 10)
		}
	}
	l.times("AcquireTime", t.Acquires)
	l.times("Waited", t.Waits)
	l.times("HoldTime", t.Holds)
	return l
}

// define adds a metric, whose value follows.
func (l *line) define(name, unit string) {
	l.metrics = append(l.metrics, `{"Name":"`+name+`","Unit":"`+unit+`"},`...)
	l.values = append(l.values, `,"`+name+`":`...)
}

// mostValues is how many values a metric may have in one document.
const mostValues = 100

func (l *line) times(name string, all []time.Duration) {
	if len(all) == 0 {
		return
	}
	l.define(name, "Milliseconds")
	if len(all) == 1 {
		l.value(all[0])
		return
	}
	sorted := slices.Sorted(slices.Values(all))
	n := min(len(sorted), mostValues)
	l.values = append(l.values, '[')
	for i := range n {
		if i > 0 {
			l.values = append(l.values, ',')
		}
		l.value(sorted[i*(len(sorted)-1)/(n-1)])
	}
	l.values = append(l.values, ']')
}

// value adds a time in milliseconds, with microseconds as its decimals.
func (l *line) value(d time.Duration) {
	l.values = strconv.AppendFloat(l.values, float64(d.Microseconds())/1000, 'f', -1, 64)
}

// property adds a member that is not a metric, unless it is empty.
func (l *line) property(name, value string) {
	if value != "" {
		l.properties = append(l.properties, `,"`+name+`":`...)
		l.properties = append(l.properties, quoted(value)...)
	}
}

func (l *line) encode() []byte {
	b := make([]byte, 0, len(l.metrics)+len(l.values)+len(l.properties)+256)
	b = append(b, `{"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, l.at.UnixMilli(), 10)
	b = append(b, `,"CloudWatchMetrics":[{"Namespace":"`+namespace+`","Dimensions":[["service"]],"Metrics":[`...)
	b = append(b, l.metrics[:len(l.metrics)-1]...)
	b = append(b, `]}]},"service":`...)
	b = append(b, quoted(l.service)...)
	b = append(b, l.properties...)
	if l.coldStart {
		b = append(b, `,"cold_start":true`...)
	}
	b = append(b, l.values...)
	return append(b, '}', '\n')
}

func quoted(text string) []byte {
	b, _ := json.Marshal(text) // a string has a JSON form
	return b
}
