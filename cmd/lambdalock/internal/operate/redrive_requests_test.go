package operate

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deadletter"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestRedriveAsksForTenAtATime counts the requests to SQS for 12,000 messages,
// and in short for a tenth of both. O4
func TestRedriveAsksForTenAtATime(t *testing.T) {
	t.Parallel()
	messages := 12000
	if testing.Short() {
		messages /= 10
	}
	for name, c := range map[string]struct {
		dead, source string // queues; no source: the messages are asynchronous
		groups       int
		completed    bool
		most         int // requests for 12,000
	}{
		"standard":        {dead: "dlq", source: "orders", most: 3700},
		"completed":       {dead: "dlq", source: "orders", completed: true, most: 2500},
		"FIFO, 20 groups": {dead: "dlq.fifo", source: "orders.fifo", groups: 20, most: 4000},
		"FIFO, one group": {dead: "dlq.fifo", source: "orders.fifo", groups: 1, most: 27000}, // one at a time keeps the order
		"asynchronous":    {dead: "dlq", most: 2500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := sqstest.New(t, "orders", "orders.fifo", "dlq", "dlq.fifo")
				store, payload := memstore.New(), `{"order":"o"}`
				if c.completed {
					rowtest.Complete(t, store, lock.Key{Name: "o", Event: "o"}, nil)
				}
				if c.source == "" {
					payload = fmt.Sprintf(`{"requestContext":{"functionArn":%q},"requestPayload":%s}`, failedFunction, payload)
				}
				for i := range messages {
					group := ""
					if c.groups > 0 {
						group = fmt.Sprint("g", i%c.groups)
					}
					m := f.Put(c.dead, c.source, fmt.Sprint("m", i), group, payload)
					if c.source == "" {
						delete(m.Attributes, "DeadLetterQueueSourceArn")
					}
				}
				order := expect.Value(deadletter.Template("{{.order}}"))(t)
				command := Redrive{Hide: time.Hour}
				q := expect.Value(deadletter.Open(t.Context(), f, c.dead, "", command.Hide))(t)
				judge := &deadletter.Judge{Store: store, Namespace: "orders", Name: order, Event: order, Unknown: true, Functions: deadletter.Functions{Client: f, ARN: failedFunction}}
				expect.Must(t, command.redrive(t.Context(), q, judge, io.Discard, io.Discard, answering(nil, nil)))
				requests := 0
				for operation, n := range f.Requests {
					if operation != "Invoke" {
						requests += n
					}
				}
				t.Logf("%d messages with %d requests: %v", messages, requests, f.Requests)
				if most := c.most * messages / 12000; requests > most || len(f.Bodies(c.dead)) > 0 {
					t.Errorf("%d requests, want at most %d; %d messages are left", requests, most, len(f.Bodies(c.dead)))
				}
			})
		})
	}
}
