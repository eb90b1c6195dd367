package invoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
)

const (
	restRequest = `{"httpMethod":"POST","headers":{"Idempotency-Key":"k"},"requestContext":{"requestId":"first"}}`
	httpEvent   = `{"version":"2.0","rawPath":"/","headers":{"idempotency-key":"k"},"requestContext":{"apiId":"x","stage":"s","requestId":"first","domainName":"x.execute-api.eu-west-1.amazonaws.com","http":{"method":"POST","path":"/"}}}`
	urlEvent    = `{"version":"2.0","requestContext":{"domainName":"x.lambda-url.eu-west-1.on.aws","http":{"method":"POST"}}}`
	albRequest  = `{"httpMethod":"POST","requestContext":{"elb":{"targetGroupArn":"arn"}}}`
)

// TestClient: the client alone repeats a request, when the answer asks for it
// or there is none.
func TestClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cmd     Command
		took    time.Duration
		answers []string // the last one again and again
		want    []string
		given   string
	}{
		"created":     {Command{}, 0, []string{`{"statusCode":201}`}, []string{"0s "}, ""},
		"bad request": {Command{}, 0, []string{`{"statusCode":400}`}, []string{"0s "}, ""},
		"conflict":    {Command{}, 0, []string{`{"statusCode":409}`}, []string{"0s "}, ""},
		"in progress": {Command{}, 0, []string{`{"statusCode":409,"headers":{"retry-after":"7"}}`, `{"statusCode":201}`}, []string{"0s ", "7s "}, ""},
		"too many":    {Command{}, 0, []string{`{"statusCode":429,"multiValueHeaders":{"Retry-After":["20"]}}`, `{"statusCode":201}`}, []string{"0s ", "20s "}, ""},
		"unavailable": {Command{}, 0, []string{`{"statusCode":503}`}, []string{"0s ", "1s ", "3s "}, "by the client after 3 requests, the last: status 503"},
		"failing":     {Command{Attempts: 2}, 0, []string{"error", "error"}, []string{"0s ", "1s "}, "by the client after 2 requests, the last: status 502"},
		"once":        {Command{Attempts: 1}, 0, []string{"error"}, []string{"0s "}, "by the client after 1 request, the last: status 502"},
		"too slow":    {Command{ClientTimeout: 2 * time.Second}, 3 * time.Second, []string{`{"statusCode":201}`}, []string{"0s ", "3s ", "7s "}, "by the client after 3 requests, the last: no answer in time"},
		"default time-out": {
			Command{Attempts: 1},
			time.Minute,
			[]string{`{"statusCode":201}`},
			[]string{"0s "},
			"by the client after 1 request, the last: no answer in time",
		},
		"scaled": {
			Command{Scale: 10},
			0,
			[]string{`{"statusCode":409,"headers":{"Retry-After":"10"}}`, `{"statusCode":409,"headers":{"Retry-After":"10"}}`, `{"statusCode":201}`},
			[]string{"0s ", "1s ", "3s "},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{took: c.took, function: func(f call) (string, error) {
				answer := c.answers[min(f.n, len(c.answers)-1)]
				if answer == "error" {
					return "", errFunction
				}
				return answer, nil
			}}
			c.cmd.Source = sourceAPI
			r, err := f.deliver(t, c.cmd, parsed(restRequest))
			f.expect(t, c.want...)
			if given := strings.Join(r.letters, ";"); given != strings.TrimSuffix("event.json, "+c.given, "event.json, ") || (err == nil) != (c.given == "") {
				t.Errorf("given up %q, want %q; %v", given, c.given, err)
			}
		})
	}
}

// TestRequestsDiffer: a request that a client repeats has the same headers and
// an id of its own.
func TestRequestsDiffer(t *testing.T) {
	t.Parallel()
	for request, differ := range map[string]bool{restRequest: true, httpEvent: true, albRequest: false} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			f := &fake{function: func(call) (string, error) { return `{"statusCode":500}`, nil }}
			_, _ = f.deliver(t, Command{Source: sourceAPI}, parsed(request))
			first, second, third := f.calls[0].payload, f.calls[1].payload, f.calls[2].payload
			if first != request || (second != first) != differ || (third != second) != differ {
				t.Errorf("%s\n%s\n%s", first, second, third)
			}
			if differ && !strings.Contains(strings.ToLower(third), `"idempotency-key":"k"`) {
				t.Errorf("the third is %s", third)
			}
		})
	}
}

// TestStatuses: what the client gets for what the function returns.
func TestStatuses(t *testing.T) {
	t.Parallel()
	stream := `{"statusCode":201,"headers":{"Retry-After":"3"}}` + "\x00\x00\x00\x00\x00\x00\x00\x00" + "body"
	failure := locallambda.Result{Outcome: locallambda.TimedOut, Payload: []byte(`{"statusCode":201}`)}
	returned := func(payload string) locallambda.Result {
		return locallambda.Result{Outcome: locallambda.Succeeded, Payload: []byte(payload), ContentType: "application/json"}
	}
	for name, c := range map[string]struct {
		request string
		result  locallambda.Result
		want    string
	}{
		"REST":                         {restRequest, returned(`{"statusCode":201}`), "status 201"},
		"REST without a status":        {restRequest, returned(`{"ok":true}`), "status 502"},
		"REST, other letter case":      {restRequest, returned(`{"StatusCode":201}`), "status 502"},
		"REST, null":                   {restRequest, returned(`null`), "status 502"},
		"REST, no JSON":                {restRequest, returned(`ok`), "status 502"},
		"REST, failed":                 {restRequest, failure, "status 502"},
		"load balancer, failed":        {albRequest, failure, "status 502"},
		"load balancer, no status":     {albRequest, returned(`{}`), "status 502"},
		"HTTP":                         {httpEvent, returned(`{"statusCode":404}`), "status 404"},
		"HTTP, inferred":               {httpEvent, returned(`{"ok":true}`), "status 200"},
		"HTTP, other letter case":      {httpEvent, returned(`{"StatusCode":503}`), "status 200"},
		"HTTP, text":                   {httpEvent, returned(`"ok"`), "status 200"},
		"HTTP, failed":                 {httpEvent, failure, "status 500"},
		"HTTP, status is text":         {httpEvent, returned(`{"statusCode":"201"}`), "status 500"},
		"HTTP, status is 0":            {httpEvent, returned(`{"statusCode":0}`), "status 500"},
		"URL, inferred":                {urlEvent, returned(`{"ok":true}`), "status 200"},
		"URL, failed":                  {urlEvent, failure, "status 502"},
		"URL, status is out of bounds": {urlEvent, returned(`{"statusCode":1000}`), "status 502"},
		"Retry-After":                  {restRequest, returned(`{"statusCode":503,"headers":{"x":"y","Retry-After":" 120"}}`), "status 503, Retry-After 2m0s"},
		"headers, other letter case":   {httpEvent, returned(`{"statusCode":503,"Headers":{"Retry-After":"120"}}`), "status 503"},
		"Retry-After in the past":      {restRequest, returned(`{"statusCode":503,"headers":{"Retry-After":"Fri, 31 Dec 1999 23:59:59 GMT"}}`), "status 503, Retry-After 0s"},
		"Retry-After makes no sense":   {restRequest, returned(`{"statusCode":503,"headers":{"Retry-After":"soon"}}`), "status 503"},
		"streamed":                     {urlEvent, locallambda.Result{Outcome: locallambda.Succeeded, Payload: []byte(stream), ContentType: streamed}, "status 201, Retry-After 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := readAnswer(readAPI([]byte(c.request)), c.result).String(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestOutcomeOfAnAnswer: an answer that asks for another request is not a
// success, although Lambda reports one.
func TestOutcomeOfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		word   string
	}{
		"created":     {`{"statusCode":201}`, succeeded},
		"in progress": {`{"statusCode":409,"headers":{"Retry-After":"1"}}`, held},
		"unavailable": {`{"statusCode":503}`, failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &record{event: parsed(restRequest)}
			one := &client{deliverer: &deliverer{Command: &Command{}, table: &localtable.Table{}}, record: r}
			v := one.judge([]*record{r}, locallambda.Result{Outcome: locallambda.Succeeded, Payload: []byte(c.answer)})
			if one.show(v, ""); v.outcome.word != c.word || !strings.Contains(v.remark, c.answer) {
				t.Errorf("%s, %s", v.outcome, v.remark)
			}
		})
	}
}

// TestInterruptedSources: when the run ends, no source delivers anything more,
// and what was under way is shown as interrupted.
func TestInterruptedSources(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for name, c := range map[string]struct {
		source      string
		e           *event
		at          time.Duration
		deliveries  int
		interrupted int
	}{
		"queue, in flight":      {sourceSQS, messages("a"), time.Second, 1, 1},
		"queue, more to come":   {sourceSQS, messages("a", "b"), time.Second, 1, 1},
		"queue, invisible":      {sourceSQS, messages("a"), 10 * time.Second, 1, 0},
		"shard, in flight":      {sourceKinesis, stream("1"), time.Second, 1, 1},
		"shard, between two":    {sourceKinesis, stream("1"), 3 * time.Second, 1, 0},
		"client, in flight":     {sourceAPI, parsed(restRequest), time.Second, 1, 1},
		"client, between two":   {sourceAPI, parsed(restRequest), 2500 * time.Millisecond, 1, 0},
		"S3, in flight":         {sourceS3, parsed(`{"Service":"Amazon S3","Event":"s3:TestEvent"}`), time.Second, 1, 1},
		"not begun":             {sourceSQS, messages("a"), 0, 0, 0},
		"whole event not begun": {"", parsed(`{}`), 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{took: 2 * time.Second, function: func(call) (string, error) { return "", errFunction }}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if c.at == 0 {
					cancel(stop)
				}
				time.AfterFunc(c.at, func() { cancel(stop) })
				cmd := &Command{Source: c.source, BatchSize: 1, Timeout: 3 * time.Second, Scale: 1, Copies: 1, Environments: 1, Concurrency: 1}
				r := newReport(t.Output(), []*event{c.e}, false)
				d := &deliverer{Command: cmd, platform: f, table: &localtable.Table{}, report: r}
				d.all(ctx, d.sources(r.events))
				if len(f.calls) != c.deliveries || r.counts[interrupted] != c.interrupted || len(r.letters) != 0 {
					t.Errorf("%d deliveries, %d interrupted, given up %q", len(f.calls), r.counts[interrupted], r.letters)
				}
				if err := r.summary(); err == nil || !strings.Contains(fmt.Sprint(err), "not completed: event.json") {
					t.Error(err)
				}
			})
		})
	}
}

// once is a writer that takes one text.
type once struct{ written bool }

func (o *once) Write(text []byte) (int, error) {
	if o.written {
		return 0, io.ErrClosedPipe
	}
	o.written = true
	return len(text), nil
}

// TestRowsThatNobodyReads: a row that cannot be written ends the run.
func TestRowsThatNobodyReads(t *testing.T) {
	t.Parallel()
	f := &fake{function: failing("a"), took: time.Second}
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		cmd := &Command{Source: sourceSQS, Timeout: 3 * time.Second, Scale: 1, Copies: 1, Environments: 1, Concurrency: 1}
		r := newReport(ending{&once{}, end}, []*event{messages("a")}, false)
		d := &deliverer{Command: cmd, platform: f, table: &localtable.Table{}, report: r}
		d.all(ctx, d.sources(r.events))
		if err := context.Cause(ctx); !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	})
	f.expect(t, "0s a")
}
