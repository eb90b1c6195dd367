// urlstream streams an export. It holds the lock until the last byte is on its
// way, so one export of a path runs at a time. Other requests get status 409
// meanwhile.
//
// Event source: a Function URL with InvokeMode RESPONSE_STREAM, and a function
// timeout long enough for the slowest client. Build with -tags lambda.norpc.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

type (
	request  = events.LambdaFunctionURLRequest
	response = events.LambdaFunctionURLStreamingResponse
)

const maxRows = 1_000_000

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.WithLock(byPath, handle))
}

// byPath sets no Event: a client that asks again wants the export again.
func byPath(_ context.Context, r request) (lock.Key, error) {
	if r.RawPath == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "rawPath", Reason: "is missing: the event is not of a Function URL"}
	}
	return lock.Key{Name: "export" + r.RawPath}, nil
}

func handle(ctx context.Context, r request) (*response, error) {
	rows := 1000
	if text := r.QueryStringParameters["rows"]; text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil || rows < 1 || rows > maxRows {
			text := fmt.Sprintf("rows must be a number from 1 to %d\n", maxRows)
			return &response{StatusCode: http.StatusBadRequest, Body: strings.NewReader(text)}, nil
		}
	}
	body, to := io.Pipe()
	go func() { to.CloseWithError(export(ctx, to, rows)) }() // nil ends the body
	return &response{StatusCode: http.StatusOK, Headers: map[string]string{"Content-Type": "text/csv"}, Body: body}, nil
}

// export is where your own work goes.
func export(ctx context.Context, to io.Writer, rows int) error {
	slog.InfoContext(ctx, "export begun", "rows", rows)
	w := bufio.NewWriterSize(to, 32<<10)
	fmt.Fprintln(w, "order,customer,total")
	for n := range rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := fmt.Fprintf(w, "%d,customer-%d,%d.00\n", n+1, n%97, n%500); err != nil {
			return err // the client has stopped reading
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	slog.InfoContext(ctx, "export done", "rows", rows)
	return nil
}
