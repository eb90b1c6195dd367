package keyfuncs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// HTTPRequest is an event with the body of a request, or of a WebSocket message.
type HTTPRequest interface {
	events.APIGatewayProxyRequest | events.APIGatewayV2HTTPRequest | events.APIGatewayWebsocketProxyRequest |
		events.ALBTargetGroupRequest | events.LambdaFunctionURLRequest
}

// Body takes the key of a request from what its body holds as JSON: a type of yours,
// or json.RawMessage for [JSON]. The key is that of inner: neither the path nor the
// caller is added to it. A body that is no such JSON is a [*lock.KeyError], and so is one
// that is not base64 although the event says so.
//
// The client sent the body, so such an error, and every *lock.KeyError of inner, is the
// client's: Client is set. Return another error from inner for what the client cannot
// mend. Client is not set for what the gateway encoded wrongly, nor where the event
// names no API or target group, because then it did not come from one.
//
// Sources: the pages of [APIGatewayREST], [APIGatewayHTTP], [APIGatewayWebSocket], [ALB]
// and [FunctionURL].
func Body[E HTTPRequest, B any](inner Func[B]) Func[E] {
	return func(ctx context.Context, e E) (lock.Key, error) {
		r := bodyOf(e)
		if r.encoded {
			b, err := base64.StdEncoding.DecodeString(r.text)
			if err != nil {
				return lock.Key{}, &lock.KeyError{Field: "body", Reason: "is not base64, although isBase64Encoded says so", Err: err}
			}
			r.text = string(b)
		}
		var body B
		if err := json.Unmarshal([]byte(r.text), &body); err != nil {
			return lock.Key{}, &lock.KeyError{
				Field: "body", Reason: "is not JSON of the expected shape", Err: fmt.Errorf("as %T: %w", body, err), Client: r.api != "",
			}
		}
		k, err := inner(ctx, body)
		if err == nil && k.Name == "" {
			err = &lock.KeyError{Field: "body", Reason: "does not say what it is about", Client: r.api != ""}
			return lock.Key{}, err
		}
		return k, ofSender(err, r.api != "")
	}
}

// ofSender says that what is wrong is in the body, and whose fault it is. It copies the
// error, which may be one value for all events.
func ofSender(err error, client bool) error {
	var inner *lock.KeyError
	if !errors.As(err, &inner) || inner == nil {
		return err
	}
	e := *inner
	e.Field, e.Client = "body."+e.Field, client
	if err != error(inner) {
		e.Err = err // wrapped: keep what was added
	}
	return &e
}

// requestBody is the body of a request and the API or target group that received it.
type requestBody struct {
	text    string
	encoded bool
	api     string
}

func bodyOf(event any) requestBody {
	switch e := event.(type) {
	case events.APIGatewayProxyRequest:
		return requestBody{e.Body, e.IsBase64Encoded, e.RequestContext.APIID}
	case events.APIGatewayV2HTTPRequest:
		return requestBody{e.Body, e.IsBase64Encoded, e.RequestContext.APIID}
	case events.APIGatewayWebsocketProxyRequest:
		return requestBody{e.Body, e.IsBase64Encoded, e.RequestContext.APIID}
	case events.ALBTargetGroupRequest:
		return requestBody{e.Body, e.IsBase64Encoded, e.RequestContext.ELB.TargetGroupArn}
	case events.LambdaFunctionURLRequest:
		return requestBody{e.Body, e.IsBase64Encoded, e.RequestContext.APIID}
	}
	return requestBody{}
}
