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

// Readers that are nil and have a JSON form, or none.
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

// returns is a handler whose result, declared as T, is v.
func returns[T any](v T) func(bool) {
	return start(byOrder, func(context.Context, order) (T, error) { return v, nil })
}

// nilResults are results that are nil, or hold nil, in every declared type that the
// runtime would stream.
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

// TestNilResultSettlesAtOnce: nobody reads or closes a stream that is nil, so its lock
// must not wait for that.
func TestNilResultSettlesAtOnce(t *testing.T) {
	t.Parallel()
	q := newQuiet()
	url, err := streamed(q, func() any { return (*events.LambdaFunctionURLStreamingResponse)(nil) })(t.Context(), order{ID: "1"})
	if p, ok := url.(*events.LambdaFunctionURLStreamingResponse); !ok || p != nil || err != nil {
		t.Errorf("%#v, %v", url, err)
	}
	q.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
	gateway, err := streamed(q, func() io.Reader { return (*events.APIGatewayProxyStreamingResponse)(nil) })(t.Context(), order{ID: "2"})
	if p, ok := gateway.(*events.APIGatewayProxyStreamingResponse); !ok || p != nil || err != nil {
		t.Errorf("%#v, %v", gateway, err)
	}
	q.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
	file, err := streamed(q, func() io.ReadCloser { return (*os.File)(nil) })(t.Context(), order{ID: "3"})
	if p, ok := file.(*os.File); !ok || p != nil || err != nil {
		t.Errorf("%#v, %v", file, err)
	}
	q.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
}
