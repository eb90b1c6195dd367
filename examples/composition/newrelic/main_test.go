package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/newrelic/go-agent/v3/integrations/nrlambda"
	"github.com/newrelic/go-agent/v3/newrelic"

	"github.com/lambdalock/lambdalock/examples/composition/suite"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestOrders runs its cases one after the other, because New Relic writes its
// transactions to the standard output, which the test replaces.
func TestOrders(t *testing.T) {
	for name, c := range map[string]struct {
		build      func(suite.Handle, *newrelic.Application, ...middleware.Option) lambda.Handler
		skippedToo bool
	}{"tracer outside": {tracerOutside, true}, "lock outside": {lockOutside, false}} {
		t.Run(name, func(t *testing.T) {
			app, err := newrelic.NewApplication(nrlambda.ConfigOption(), newrelic.ConfigAppName("orders"))
			if err != nil {
				t.Fatal(err)
			}
			output := divertStdout(t)
			build := func(h suite.Handle) any { return c.build(h, app, suite.Options()...) }
			hasSpan := func(ctx context.Context) bool { return newrelic.FromContext(ctx) != nil }
			spans := func() int { return transactions(t, output()) }
			suite.Tracer(t, build, hasSpan, spans, c.skippedToo)
		})
	}
}

// TestWithoutApplication shows that without an application one order works,
// untraced, and the other says so when the function starts.
func TestWithoutApplication(t *testing.T) {
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "nrlambda.Wrap without an application") {
			t.Errorf("panicked with %q", p)
		}
	}()
	untraced := tracerOutside(handle, nil, suite.Options()...)
	if _, err := suite.Invoke(t.Context(), untraced, []byte(`{"id":"1","source":"shop.orders","detail-type":"order","detail":{}}`)); err != nil {
		t.Error(err)
	}
	lockOutside(handle, nil, suite.Options()...)
}

// divertStdout sends what is printed into a file, and returns a function for
// what is new in it.
func divertStdout(t *testing.T) func() string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "stdout")
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = f
	t.Cleanup(func() { os.Stdout = stdout; f.Close() })
	var read int64
	return func() string {
		b, err := io.ReadAll(io.NewSectionReader(f, read, 1<<20))
		if err != nil {
			t.Error(err)
		}
		read += int64(len(b))
		return string(b)
	}
}

// transactions returns how many transactions New Relic has written.
func transactions(t *testing.T, output string) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(output) {
		var message []any // version, purpose, metadata, data
		if json.Unmarshal([]byte(line), &message) != nil || len(message) != 4 {
			t.Errorf("not from New Relic: %s", line)
			continue
		}
		zipped, err := base64.StdEncoding.DecodeString(message[3].(string))
		if err != nil {
			t.Error(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(zipped))
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			Events []any `json:"analytic_event_data"`
		}
		if err := json.NewDecoder(r).Decode(&data); err != nil {
			t.Error(err)
		}
		if len(data.Events) == 3 { // run, sampling, events
			n += len(data.Events[2].([]any))
		}
	}
	return n
}
