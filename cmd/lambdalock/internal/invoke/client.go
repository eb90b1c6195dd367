package invoke

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

const (
	// clientAttempts is how often a client sends a request unless --attempts says
	// otherwise.
	clientAttempts = 3
	// clientTimeout is how long a REST API of API Gateway waits for a function, see
	// https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-execution-service-limits-table.html.
	clientTimeout = 29 * time.Second
	// clientPause is how long a client waits before its second request if the
	// answer does not say, and half of what it waits before the third.
	clientPause = time.Second
)

// client sends a request to an API. Only the client repeats it, see
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-retries.html. It sends
// the same request, so also the same Idempotency-Key, after no answer, after
// the statuses 429 and 5xx, and after 409 with Retry-After, which says that the
// first request is still in progress.
type client struct {
	*deliverer
	record *record
	late   sync.WaitGroup // for functions whose result is no longer needed
}

// run sends the request until there is a final answer. A request that came
// while another one was in progress, sooner than Retry-After asked for, does
// not count.
func (c *client) run(ctx context.Context, queued func()) {
	defer c.late.Wait()
	var wait *eventsource.Wait
	for sent := 0; ; {
		due := wait.Due(time.Now())
		a, ok := c.ask(ctx, due, queued)
		if !ok || !a.again() {
			return
		}
		asked := time.Now()
		if due || !a.inProgress() {
			if sent++; sent == c.attempts(clientAttempts) {
				c.report.giveUp([]*record{c.record}, fmt.Sprintf("by the client after %s, the last: %v", requests(sent), a))
				return
			}
			wait = eventsource.NewWait(a.pause(sent), c.Scale, asked)
		}
		if !wait.Sleep(ctx) {
			return
		}
		c.record.received++ // so that the next request is another one
		c.report.waited(asked, time.Now(), a.pause(sent))
	}
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}

// ask sends the request once, and waits for the answer until the client's
// time-out. It reports false if the run ends first.
func (c *client) ask(ctx context.Context, due bool, queued func()) (answer, bool) {
	answered, gone := make(chan *delivery), make(chan struct{})
	payload, sent := c.request(), *c.record // the next request may be sent before the answer to this one
	c.late.Go(func() {
		defer close(answered)
		result, err := c.platform.Attempt(ctx, locallambda.Invocation{Payload: payload, Queued: queued})
		if err != nil {
			c.report.interrupt(c.record.event.name)
			return
		}
		v := c.judge([]*record{&sent}, result)
		select {
		case answered <- v:
		case <-gone:
			c.show(v, "nobody waits any more for ")
			c.finish(v, true)
		}
	})
	select {
	case v := <-answered:
		if v == nil {
			return answer{}, false
		}
		a := c.show(v, "")
		c.finish(v, due || !a.inProgress())
		return a, true
	case <-time.After(c.patience()):
		close(gone)
		return answer{}, true
	}
}

func (c *client) patience() time.Duration {
	if c.ClientTimeout > 0 {
		return c.ClientTimeout
	}
	return clientTimeout
}

// show puts the status that the client gets into the row of a delivery. An
// answer that asks for another request is not a success, even if Lambda reports
// one.
func (c *client) show(v *delivery, prefix string) answer {
	a := readAnswer(c.record.event.api, v.result)
	text := string(v.result.Payload)
	if v.result.Outcome != locallambda.Succeeded {
		text = v.result.ErrorType + ": " + v.result.ErrorMessage
	}
	v.remark = fmt.Sprintf("%s%v: %s", prefix, a, text)
	switch {
	case v.result.Outcome != locallambda.Succeeded || !a.again():
	case a.inProgress() && v.outcome.word != ran:
		v.outcome = outcome{word: held}
	default:
		v.outcome = outcome{word: failed}
	}
	return a
}

// request returns the next request. API Gateway and Function URLs give each one
// an id.
func (c *client) request() []byte {
	if c.record.received == 0 {
		return c.record.event.payload
	}
	var document, about map[string]json.RawMessage
	_ = json.Unmarshal(c.record.event.payload, &document) // an API's event is an object
	_ = json.Unmarshal(document["requestContext"], &about)
	if about["requestId"] == nil { // that of a load balancer
		return c.record.event.payload
	}
	about["requestId"], _ = json.Marshal(rand.Text())
	document["requestContext"], _ = json.Marshal(about)
	text, _ := json.Marshal(document)
	return text
}

// answer is what a client gets.
type answer struct {
	status     int           // 0: nothing before its time-out
	says       bool          // the answer has a Retry-After
	retryAfter time.Duration // that is in it
}

func (a answer) String() string {
	switch {
	case a.status == 0:
		return "no answer in time"
	case a.says:
		return fmt.Sprintf("status %d, Retry-After %v", a.status, a.retryAfter)
	}
	return fmt.Sprintf("status %d", a.status)
}

// inProgress reports whether another request with the key is in progress.
func (a answer) inProgress() bool { return a.status == http.StatusConflict && a.says }

// again reports whether the client sends the request again.
func (a answer) again() bool {
	return a.status == 0 || a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests || a.inProgress()
}

// pause returns how long to wait before a request that follows so many others.
func (a answer) pause(sent int) time.Duration {
	if a.says {
		return a.retryAfter
	}
	return clientPause << min(max(sent-1, 0), 10)
}
