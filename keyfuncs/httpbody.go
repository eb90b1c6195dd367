package keyfuncs

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// HTTPBody takes the key of a request from the JSON in its body, decoded as B
// like the body in [SQSBody]. It adds neither path nor caller; see [Caller].
//
// The error is a [*lock.NoKeyError] if the body is not such JSON, or not base64
// although the event says so, or if another gateway than E's sent the event.
// Client is set in it and in those of inner, unless the gateway is at fault.
// Missing is set if there is no body, or nothing in it that inner looks for;
// see [Optional].
func HTTPBody[E, B any](inner Func[B]) Func[E] {
	notNil("HTTPBody", inner)
	mustHoldRequest[E]("HTTPBody")
	return func(ctx context.Context, e E) (lock.Key, error) {
		r, err := requestOf(e)
		if err != nil {
			return lock.Key{}, err
		}
		text, err := r.body.decoded()
		if err != nil {
			return lock.Key{}, err
		}
		client := r.api.value != ""
		if text == "" && !client {
			return lock.Key{}, &lock.NoKeyError{Field: "body", Reason: "is missing, and no gateway is named: " + keyparts.AnotherSource + "; a request that a test builds needs a body, or a gateway in its requestContext"}
		}
		var body B
		if err := parse([]byte(text), &body); err != nil {
			return lock.Key{}, &lock.NoKeyError{
				Field: "body", Reason: "is not JSON of the expected shape", Err: fmt.Errorf("as %T: %w", body, err), Client: client, Missing: text == "",
			}
		}
		k, err := faithful(ctx, []byte(text), body, inner, func(text []byte) (b B, err error) { return b, parse(text, &b) })
		if err == nil && k.Name == "" {
			return lock.Key{}, &lock.NoKeyError{Field: "body", Reason: "lacks the field that identifies the request", Client: client, Missing: true}
		}
		return k, relocated(within("body", err), func(e *lock.NoKeyError) { e.Client = client })
	}
}

// requestBody is the body of a request.
type requestBody struct {
	text    string
	encoded bool
}

// decoded returns the text of the body as the client sent it.
func (b requestBody) decoded() (string, error) {
	if !b.encoded {
		return b.text, nil
	}
	text, err := base64.StdEncoding.DecodeString(b.text)
	if err != nil {
		return "", &lock.NoKeyError{Field: "body", Reason: "is not base64, although isBase64Encoded says so", Err: err}
	}
	return string(text), nil
}

func bodyOf(found any) requestBody {
	switch e := found.(type) {
	case events.APIGatewayProxyRequest:
		return requestBody{e.Body, e.IsBase64Encoded}
	case events.APIGatewayV2HTTPRequest:
		return requestBody{e.Body, e.IsBase64Encoded}
	case events.APIGatewayWebsocketProxyRequest:
		return requestBody{e.Body, e.IsBase64Encoded}
	case events.ALBTargetGroupRequest:
		return requestBody{e.Body, e.IsBase64Encoded}
	}
	e := found.(events.LambdaFunctionURLRequest) // there is no other type
	return requestBody{e.Body, e.IsBase64Encoded}
}
