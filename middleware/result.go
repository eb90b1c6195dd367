package middleware

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
)

var errNotStream = errors.New("lambdalock: the stored result is not a response that can be streamed")

// encode implements exchange. Streams of the user's own are sent with status
// 200 by the runtime.
func (r *request) encode(result any, always bool) (doc []byte, body *io.Reader, err error) {
	if head, body := streamingResponse(result); head != nil {
		return head.encoded(), body, nil // now, because the handler may change its maps while the body is read
	}
	if _, ok := result.(io.Reader); ok && !isNil(result) {
		switch head, _ := streamingResponse(embedded(result)); {
		case head != nil:
			doc = head.encoded()
		case r.gateway != eventkind.NoGateway:
			doc = (&response{StatusCode: http.StatusOK}).encoded()
		}
		return doc, nil, nil
	}
	if !always && r.gateway == eventkind.NoGateway && !r.counts {
		return nil, nil, nil
	}
	doc, err = marshal(result)
	return doc, nil, err
}

// checkStreams panics if the handler's result is a stream that an option, or
// the wrapper, cannot handle.
func (c *config) checkStreams(sig signature) {
	response := sig.result == urlStreamType || sig.result == apiStreamType
	switch {
	case sig.result != nil && c.held.response != nil && reflect.TypeOf(c.held.response).AssignableTo(sig.result):
		refuseStreamed(c.held.response)
	case sig.streams() && !response && c.completed.action == replay:
		refuse("OnCompleted(Replay) cannot store the stream that %s returns: choose Skip or Fail", sig.t)
	case sig.streams() && !response && !reflect.TypeFor[*stream]().AssignableTo(sig.result):
		refuse("the handler's result %s is streamed, and its end cannot be seen: declare it as io.Reader or io.ReadCloser", sig.result)
	}
}

// refuseStreamed panics if Respond was given a stream, which the type of the
// handler's result may hide.
func refuseStreamed(response any) {
	if _, ok := response.(io.Reader); ok && !isNil(response) {
		refuse("OnHeld(Respond) cannot return a %T to several callers, because a stream can be read once: use OnError, which makes a new one for each", response)
	}
}

// withBody implements exchange.
func (*request) withBody(doc, body []byte) []byte {
	var whole response
	_ = json.Unmarshal(doc, &whole) // it is one
	whole.Body, whole.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	return whole.encoded()
}

// decode returns a stored result as a value of the handler's result type.
// Numbers in an untyped result keep all their digits, also beyond what a
// float64 can hold.
func decode(stored []byte, result reflect.Type) (reflect.Value, error) {
	v := reflect.New(result)
	if result.Implements(readerType) || result == anyType {
		stream, err := decodeStream(stored, result)
		if err != nil {
			return v.Elem(), err
		}
		if stream != nil {
			v.Elem().Set(reflect.ValueOf(stream))
			return v.Elem(), nil
		}
	}
	d := json.NewDecoder(bytes.NewReader(stored))
	d.UseNumber()
	err := d.Decode(v.Interface())
	return v.Elem(), err
}

// streamingResponse returns the head of a streaming response, and its body. The
// head is nil for every other result. A status of 0 stands for 200: the
// response of a Function URL says so itself, and API Gateway gets none.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/response-transfer-mode-lambda.html
func streamingResponse(v any) (*response, *io.Reader) {
	switch s := v.(type) {
	case *events.LambdaFunctionURLStreamingResponse:
		if s != nil {
			status := cmp.Or(s.StatusCode, http.StatusOK)
			return &response{StatusCode: status, Headers: s.Headers, Cookies: s.Cookies, Streamed: urlStream}, &s.Body
		}
	case *events.APIGatewayProxyStreamingResponse:
		if s != nil {
			status := cmp.Or(s.StatusCode, http.StatusOK)
			return &response{StatusCode: status, Headers: s.Headers, MultiValueHeaders: s.MultiValueHeaders, Cookies: s.Cookies, Streamed: apiStream}, &s.Body
		}
	}
	return nil, nil
}

// embedded returns the streaming response that a struct of the user's embeds,
// or nil.
func embedded(v any) any {
	s := reflect.Indirect(reflect.ValueOf(v))
	if s.Kind() != reflect.Struct {
		return nil
	}
	for _, t := range []reflect.Type{urlStreamType, apiStreamType} {
		switch f, _ := s.Type().FieldByName(t.Elem().Name()); {
		case !f.Anonymous || len(f.Index) > 1:
		case f.Type == t:
			return s.FieldByIndex(f.Index).Interface()
		case f.Type == t.Elem(): // v is a pointer, because it is a stream
			return s.FieldByIndex(f.Index).Addr().Interface()
		}
	}
	return nil
}

// decodeStream returns a stored response as a streaming response for a handler
// with that result type, or nil if it is to be decoded like any other result.
func decodeStream(stored []byte, result reflect.Type) (any, error) {
	var r response
	err := json.Unmarshal(stored, &r)
	switch result {
	case anyType:
		if err != nil || r.Streamed == notStreamed {
			return nil, nil
		}
	case urlStreamType:
		r.Streamed = urlStream
	case apiStreamType:
		r.Streamed = apiStream
	}
	if string(stored) == "null" {
		return nil, nil
	}
	body := []byte(r.Body)
	if r.IsBase64Encoded && err == nil {
		body, err = base64.StdEncoding.DecodeString(r.Body)
	}
	switch {
	case err != nil || r.Streamed == notStreamed:
		return nil, cmp.Or(err, errNotStream)
	case r.Streamed == apiStream:
		return &events.APIGatewayProxyStreamingResponse{
			StatusCode: r.StatusCode, Headers: r.Headers, MultiValueHeaders: r.MultiValueHeaders, Cookies: r.Cookies, Body: bytes.NewReader(body),
		}, nil
	}
	return &events.LambdaFunctionURLStreamingResponse{
		StatusCode: r.StatusCode, Headers: r.Headers, Cookies: r.Cookies, Body: bytes.NewReader(body),
	}, nil
}
