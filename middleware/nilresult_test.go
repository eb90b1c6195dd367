package middleware_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// Types of readers that can be nil.
type (
	readerSlice []byte
	readerMap   map[string]int
	readerFunc  func() string
)

func (readerSlice) Read([]byte) (int, error)    { return 0, io.EOF }
func (readerMap) Read([]byte) (int, error)      { return 0, io.EOF }
func (readerFunc) Read([]byte) (int, error)     { return 0, io.EOF }
func (readerSlice) Close() error                { return nil }
func (readerMap) Close() error                  { return nil }
func (readerFunc) Close() error                 { return nil }
func (*pointerReader) Read([]byte) (int, error) { return 0, io.EOF }
func (*pointerReader) Close() error             { return nil }
func (p *pointerReader) ContentType() string    { return p.contentType }

type pointerReader struct{ contentType string }

// returns starts a handler whose result, declared as T, is v.
func returns[T any](v T) func(bool) {
	return start(byOrder, func(context.Context, order) (T, error) { return v, nil })
}

// nilResults are functions of the local Lambda whose result is nil, or holds
// nil, in every declared type that the runtime would stream.
var nilResults = map[string]func(bool){
	"nil any":                    returns[any](nil),
	"nil reader":                 returns[io.Reader](nil),
	"nil read closer":            returns[io.ReadCloser](nil),
	"nil function URL":           returns[*events.LambdaFunctionURLStreamingResponse](nil),
	"nil REST API":               returns[*events.APIGatewayProxyStreamingResponse](nil),
	"any of nil function URL":    returns[any]((*events.LambdaFunctionURLStreamingResponse)(nil)),
	"any of nil REST API":        returns[any]((*events.APIGatewayProxyStreamingResponse)(nil)),
	"any of nil strings.Reader":  returns[any]((*strings.Reader)(nil)),
	"any of nil bytes.Buffer":    returns[any]((*bytes.Buffer)(nil)),
	"any of nil file":            returns[any]((*os.File)(nil)),
	"any of nil pointer":         returns[any]((*pointerReader)(nil)),
	"any of nil slice":           returns[any](readerSlice(nil)),
	"any of nil map":             returns[any](readerMap(nil)),
	"any of nil func":            returns[any](readerFunc(nil)),
	"any of nil response":        returns[any]((*events.APIGatewayV2HTTPResponse)(nil)),
	"reader of nil function URL": returns[io.Reader]((*events.LambdaFunctionURLStreamingResponse)(nil)),
	"reader of nil REST API":     returns[io.Reader]((*events.APIGatewayProxyStreamingResponse)(nil)),
	"reader of nil pointer":      returns[io.Reader]((*pointerReader)(nil)),
	"reader of nil buffer":       returns[io.Reader]((*bytes.Buffer)(nil)),
	"reader of nil slice":        returns[io.Reader](readerSlice(nil)),
	"reader of nil map":          returns[io.Reader](readerMap(nil)),
	"reader of nil func":         returns[io.Reader](readerFunc(nil)),
	"closer of nil function URL": returns[io.ReadCloser]((*events.LambdaFunctionURLStreamingResponse)(nil)),
	"closer of nil REST API":     returns[io.ReadCloser]((*events.APIGatewayProxyStreamingResponse)(nil)),
	"closer of nil pointer":      returns[io.ReadCloser]((*pointerReader)(nil)),
	"closer of nil file":         returns[io.ReadCloser]((*os.File)(nil)),
	"closer of nil slice":        returns[io.ReadCloser](readerSlice(nil)),
	"closer of nil map":          returns[io.ReadCloser](readerMap(nil)),
	"closer of nil func":         returns[io.ReadCloser](readerFunc(nil)),
	"empty function URL":         returns(&events.LambdaFunctionURLStreamingResponse{}),
	"empty REST API":             returns(&events.APIGatewayProxyStreamingResponse{}),
	"any of empty function URL":  returns[any](&events.LambdaFunctionURLStreamingResponse{}),
	"function URL by value":      returns[any](events.LambdaFunctionURLStreamingResponse{StatusCode: 201}),
	"function URL of nil slice":  returns(&events.LambdaFunctionURLStreamingResponse{Body: readerSlice(nil)}),
	"function URL of nil pointer": returns[any](&events.LambdaFunctionURLStreamingResponse{
		Body: (*pointerReader)(nil),
	}),
}

// TestNilResultCompletesAtOnce shows that the lock does not wait for the end of
// a nil stream, which nobody reads or closes.
func TestNilResultCompletesAtOnce(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*fixture) (out, want any, err error){
		"any": func(f *fixture) (any, any, error) {
			want := (*events.LambdaFunctionURLStreamingResponse)(nil)
			out, err := streamed(f, func() any { return want })(t.Context(), order{ID: "1"})
			return out, want, err
		},
		"io.Reader": func(f *fixture) (any, any, error) {
			want := (*events.APIGatewayProxyStreamingResponse)(nil)
			out, err := streamed(f, func() io.Reader { return want })(t.Context(), order{ID: "1"})
			return out, want, err
		},
		"io.ReadCloser": func(f *fixture) (any, any, error) {
			want := (*os.File)(nil)
			out, err := streamed(f, func() io.ReadCloser { return want })(t.Context(), order{ID: "1"})
			return out, want, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			if out, want, err := call(f); out != want || err != nil {
				t.Errorf("%#v, %v; want %#v", out, err, want)
			}
			f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
		})
	}
}
