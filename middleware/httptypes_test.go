package middleware

import (
	"encoding/json"
	"io"
	"reflect"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
)

// strict takes only the JSON that its author has thought of.
type strict struct{ ID string }

func (s *strict) UnmarshalJSON(doc []byte) error {
	var m map[string]any
	err := json.Unmarshal(doc, &m)
	s.ID = m["id"].(string)
	return err
}

// strictRequest takes only requests of a Function URL.
type strictRequest struct{ RequestContext map[string]any }

func (s *strictRequest) UnmarshalJSON(doc []byte) error {
	var m map[string]map[string]any
	err := json.Unmarshal(doc, &m)
	_ = m["requestContext"]["http"].(map[string]any)
	s.RequestContext = m["requestContext"]
	return err
}

func (s strictRequest) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"requestContext": s.RequestContext})
}

// full can be encoded only when it has been filled in.
type full struct{ status *int }

func (f full) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int{"statusCode": *f.status})
}

// TestHTTPByTypes is the table in http.go.
func TestHTTPByTypes(t *testing.T) {
	t.Parallel()
	type (
		event struct{ ID string }
		keeps struct {
			RequestContext json.RawMessage `json:"requestContext"`
		}
		methods interface{ Status() int }
		embeds  struct{ events.APIGatewayV2HTTPRequest }
		result  struct{ ID string }
		status  struct {
			StatusCode int `json:"statusCode"`
		}
		rest        = events.APIGatewayProxyResponse
		ownResponse rest
	)
	type row struct {
		event, result reflect.Type
		gateway       eventkind.Gateway
		payload       bool // decides
		status        bool // decides, if nothing else does
	}
	var (
		anything = reflect.TypeFor[any]()
		raw      = reflect.TypeFor[json.RawMessage]()
		object   = reflect.TypeFor[map[string]any]()
		own      = reflect.TypeFor[event]()
		queue    = reflect.TypeFor[events.SQSEvent]()
		answer   = reflect.TypeFor[status]()
		none     reflect.Type
	)
	for name, rows := range map[string][]row{
		"request": {
			{event: reflect.TypeFor[events.APIGatewayProxyRequest](), result: reflect.TypeFor[result](), gateway: eventkind.Payload1},
			{event: reflect.TypeFor[*events.LambdaFunctionURLRequest](), result: anything, gateway: eventkind.Payload2},
			{event: reflect.TypeFor[embeds](), result: answer, gateway: eventkind.Payload2},
			{event: reflect.TypeFor[events.ALBTargetGroupRequest](), result: raw, gateway: eventkind.LoadBalancer},
		},
		"response": {
			{event: own, result: reflect.TypeFor[rest](), gateway: eventkind.Payload1},
			{event: queue, result: reflect.TypeFor[*events.LambdaFunctionURLStreamingResponse](), gateway: eventkind.Payload2},
			{event: raw, result: reflect.TypeFor[ownResponse](), gateway: eventkind.Payload1},
		},
		"any JSON, or keeps a request": {
			{event: raw, result: raw, payload: true, status: true},
			{event: object, result: answer, payload: true, status: true},
			{event: anything, result: anything, payload: true, status: true},
			{event: reflect.TypeFor[[]byte](), result: answer, payload: true, status: true},
			{event: raw, result: reflect.TypeFor[methods](), payload: true, status: true},
			{event: reflect.TypeFor[keeps](), result: answer, payload: true, status: true},
		},
		"other event of AWS": {{event: queue, result: anything}, {event: queue, result: answer}},
		"own type, status":   {{event: own, result: answer, gateway: eventkind.Payload2}},
		"own type, any JSON": {{event: own, result: anything, status: true}, {event: own, result: object, status: true}, {event: own, result: reflect.TypeFor[io.Reader](), status: true}, {event: own, result: reflect.TypeFor[methods](), status: true}},
		"panics for what it does not expect": {
			{event: reflect.TypeFor[strict](), result: anything, status: true},
			{event: reflect.TypeFor[strict](), result: answer, gateway: eventkind.Payload2},
			{event: reflect.TypeFor[strict](), result: reflect.TypeFor[strict]()},
			{event: raw, result: reflect.TypeFor[*strict]()},
			{event: own, result: reflect.TypeFor[full]()},
			{event: reflect.TypeFor[strictRequest](), result: anything, payload: true, status: true},
		},
		"none, or any other one": {{event: raw, result: none}, {event: own, result: reflect.TypeFor[result]()}, {event: raw, result: reflect.TypeFor[string]()}},
	} {
		for _, r := range rows {
			got := httpOf(r.event, r.result)
			if got.gateway != r.gateway || got.byPayload != r.payload || got.byValue != r.status {
				t.Errorf("%s: %v, %v: %+v", name, r.event, r.result, got)
			}
		}
	}
}
