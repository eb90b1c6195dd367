package keyfuncs

import (
	"context"
	"encoding/base64"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/eventkind"
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
// Sources: the pages of [APIGatewayREST], [APIGatewayHTTP], [APIGatewayWebSocket], [ALB]
// and [FunctionURL].
func Body[E HTTPRequest, B any](inner Func[B]) Func[E] {
	return func(ctx context.Context, e E) (lock.Key, error) {
		text, encoded := bodyOf(e)
		if encoded {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return lock.Key{}, &lock.KeyError{Field: "body", Reason: "is not base64, although isBase64Encoded says so", Err: err}
			}
			text = string(b)
		}
		return envelope(ctx, eventkind.HTTP, "body", text, "", inner)
	}
}

func bodyOf(event any) (text string, encoded bool) {
	switch e := event.(type) {
	case events.APIGatewayProxyRequest:
		return e.Body, e.IsBase64Encoded
	case events.APIGatewayV2HTTPRequest:
		return e.Body, e.IsBase64Encoded
	case events.APIGatewayWebsocketProxyRequest:
		return e.Body, e.IsBase64Encoded
	case events.ALBTargetGroupRequest:
		return e.Body, e.IsBase64Encoded
	case events.LambdaFunctionURLRequest:
		return e.Body, e.IsBase64Encoded
	}
	return "", false
}
