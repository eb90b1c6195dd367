package middleware

import (
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
)

// Whether a handler answers over HTTP, by the types of its event and result:
// the first row that fits counts. A request or a response is a type of
// aws-lambda-go, or is defined as one, points to one or embeds one. Any JSON is
// any, a map or bytes. By payload, or status: that of each invocation decides.
//
//	event                         result               over HTTP
//	any                           none                 no
//	request                       any                  yes, as its gateway
//	any                           response             yes, as its gateway
//	any JSON, or keeps a request  any JSON, or status  by payload, or status
//	another event of AWS          any JSON, or status  no
//	the user's own                status               yes, as format 2.0
//	the user's own                any JSON             by status
//	any                           any other            no

var (
	anyType       = reflect.TypeFor[any]()
	urlStreamType = reflect.TypeFor[*events.LambdaFunctionURLStreamingResponse]()
	apiStreamType = reflect.TypeFor[*events.APIGatewayProxyStreamingResponse]()
)

// overHTTP says how a handler answers over HTTP.
type overHTTP struct {
	gateway eventkind.Gateway // NoGateway: the types do not show one
	// byPayload is set if the payload shows the gateway.
	byPayload bool
	// byValue is set if nothing before the result may show that there is a gateway.
	byValue bool
	// namesCaller is set if a type of the user's can hold what names the caller of
	// a request that shows no gateway.
	namesCaller bool
	// responds is set if the result type can hold a response. A type of the user's
	// may be only the body of one.
	responds bool
	// maySayAgain is set if the result type can hold what [saysAgain] looks for.
	maySayAgain bool
	// unreadable is set if the result type writes a response that cannot be read
	// back.
	unreadable bool
}

// httpOf returns how a handler with that result answers an event of that type.
// A raw handler has the result type json.RawMessage.
func httpOf(event, result reflect.Type) overHTTP {
	if result == nil {
		return overHTTP{}
	}
	h := overHTTP{gateway: cmp.Or(eventkind.GatewayOfRequest(event), eventkind.GatewayOfResponse(result)), responds: holdsResponse(result)}
	h.maySayAgain = result.Kind() == reflect.Interface
	for _, doc := range []string{
		`{"batchItemFailures":[{"itemIdentifier":"i"}]}`,
		`{"batchItemFailures":[null]}`, // fits identifiers of any shape, such as the objects of Kafka
		`{"results":[{"resultCode":"TemporaryFailure"}]}`,
		`{"treatMissingKeysAs":"TemporaryFailure"}`,
	} {
		h.maySayAgain = h.maySayAgain || saysAgain(throughType([]byte(doc), result))
	}
	otherSource := ofAWS(event) // unless it is a request, a status in the result is not for a gateway
	holdsAnything := result.Kind() == reflect.Interface || result.Kind() == reflect.Map || result == rawType
	switch {
	case h.gateway != eventkind.NoGateway || !h.responds && !holdsAnything:
	case takesAnyJSON(event) || keepsRequest(event):
		h.byPayload = true
	case !holdsAnything && !otherSource:
		h.gateway = eventkind.Payload2 // the result has a status, whose only use is a response
	}
	h.byValue = h.gateway == eventkind.NoGateway && (h.responds || holdsAnything) && !otherSource
	h.namesCaller = h.byValue && !takesAnyJSON(event) && namesCaller(event)
	h.unreadable = !h.responds && (h.gateway != eventkind.NoGateway && result.Kind() == reflect.Interface ||
		(h.gateway != eventkind.NoGateway || !otherSource) && writesStatus(result))
	return h
}

// writesStatus reports whether a value of a result type has a status in its
// JSON form.
func writesStatus(result reflect.Type) (writes bool) {
	defer func() { _ = recover() }() // of a MarshalJSON that expects more than a zero value
	v := reflect.New(deref(result))
	b, err := json.Marshal(v.Interface())
	var members map[string]json.RawMessage
	return err == nil && json.Unmarshal(b, &members) == nil && members["statusCode"] != nil
}

// keepsRequest reports whether a value of a type of the user's has what shows
// the gateway in its JSON form.
func keepsRequest(event reflect.Type) bool {
	for _, doc := range []string{
		`{"httpMethod":"GET","requestContext":{"apiId":"a"}}`,
		`{"requestContext":{"apiId":"a","http":{"method":"GET"}}}`,
		`{"requestContext":{"elb":{"targetGroupArn":"arn"}}}`,
	} {
		if b := throughType([]byte(doc), event); eventkind.GatewayOf(b) != eventkind.NoGateway {
			return true
		}
	}
	return false
}

// namesCaller reports whether a value of a type of the user's can hold what
// names the caller of a request.
func namesCaller(event reflect.Type) bool {
	for _, doc := range []string{
		`{"headers":{"h":"v"}}`, `{"multiValueHeaders":{"h":["v"]}}`, `{"cookies":["c"]}`, `{"requestContext":{"c":"v"}}`,
	} {
		if _, ok := callerFields(throughType([]byte(doc), event)); ok {
			return true
		}
	}
	return false
}

// holdsResponse reports whether a value of a result type can be a response with
// a status: its own type, or a type of the user's with the same JSON.
func holdsResponse(result reflect.Type) bool {
	if result.Implements(readerType) {
		return urlStreamType.AssignableTo(result) || result == apiStreamType
	}
	return statusOf(throughType([]byte(`{"statusCode":409}`), result), eventkind.Payload1) == http.StatusConflict
}

// throughType returns what is left of a JSON document in a value of a type: nil
// if the type takes no such JSON. A method of the user's may say so with a
// panic, because the document is made up.
func throughType(doc []byte, t reflect.Type) (kept []byte) {
	defer func() { _ = recover() }()
	v, err := decode(doc, t)
	if err != nil {
		return nil
	}
	b, _ := json.Marshal(v.Interface()) // nil after an error
	return b
}

// use takes the defaults for handlers that answer over HTTP, and panics if an
// option does not fit them.
func (c *config) use(h overHTTP) {
	c.ask = h.ask
	held, err := json.Marshal(c.held.response)
	if h.unreadable && (c.completedIf == nil || !c.completed.chosen || c.completed.action == replay) {
		refuse("the handler's result has a status that cannot be read back from its JSON form, so its responses can be neither judged nor replayed: return a response type of aws-lambda-go, give yours a field StatusCode int `json:\"statusCode\"` or an UnmarshalJSON, or declare the result as any; or choose with CompletedIf and OnCompleted(Fail)")
	}
	if h.responds && (h.byPayload || h.gateway != eventkind.NoGateway) && c.held.action == respond && string(held) == "null" {
		refuse("OnHeld(Respond(nil)) would answer an HTTP request without a status, which the gateway answers with an error: pass a response with status 409 for example, or leave the option out")
	}
	if h.gateway == eventkind.NoGateway {
		return
	}
	if i := c.interrupted; i.question != nil && i.gives == nil && i.answers == rawType {
		refuse("Ask has no result for the lambda.Handler to answer with, and over HTTP the client would get status 409: use AskFor")
	}
	if c.engine.CompleteWithin == 0 {
		c.engine.CompleteWithin = 5 * time.Second
	}
	const empty = "would answer an HTTP request with an empty response, which the client gets as an error or as a success"
	switch {
	case c.held.action != skip:
	case h.responds:
		refuse("OnHeld(Skip) %s: leave it out to answer with status 409, or choose Fail, Wait or Respond", empty)
	default:
		refuse("OnHeld(Skip) %s: leave it out, so that the client gets an error, or choose Wait or Respond", empty)
	}
	if !h.responds {
		return
	}
	if c.completed.chosen && c.completed.action == skip {
		refuse("OnCompleted(Skip) %s: leave it out to replay the first response, or choose Fail", empty)
	}
	if c.held.action == respond && err == nil && statusOf(held, h.gateway) == 0 {
		refuse("OnHeld(Respond) was given a response without a status, which the gateway answers with an error: set its StatusCode, for example to 409")
	}
}

// gatewayOf returns the gateway of one invocation. payload is what the handler
// was given: by the runtime JSON, or what it decodes to; by a test or another
// wrapper perhaps an event.
func (h *overHTTP) gatewayOf(payload any) eventkind.Gateway {
	if !h.byPayload || payload == nil {
		return h.gateway
	}
	if gateway := eventkind.GatewayOfRequest(reflect.TypeOf(payload)); gateway != eventkind.NoGateway {
		return gateway
	}
	switch v := reflect.ValueOf(payload); v.Kind() {
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return eventkind.GatewayOf(v.Bytes())
		}
	case reflect.Map, reflect.Struct, reflect.Pointer:
		if m, ok := payload.(map[string]any); ok && m["requestContext"] == nil { // most events, so save their encoding
			return eventkind.NoGateway
		}
		if b, err := json.Marshal(payload); err == nil {
			return eventkind.GatewayOf(b)
		}
	}
	return eventkind.NoGateway
}

// repeatable has the client errors after which the same request may succeed
// later, or if it comes with other credentials, over another connection or with
// other headers, which no Payload has: they say nothing about the work.
// https://www.rfc-editor.org/rfc/rfc9110#name-client-error-4xx
// https://www.rfc-editor.org/rfc/rfc4918#section-11.3
// https://www.rfc-editor.org/rfc/rfc8470#section-5.2
// https://www.rfc-editor.org/rfc/rfc6585
var repeatable = map[int]bool{
	http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusProxyAuthRequired: true, http.StatusRequestTimeout: true,
	http.StatusConflict: true, http.StatusMisdirectedRequest: true, http.StatusLocked: true, http.StatusTooEarly: true,
	http.StatusUpgradeRequired: true, http.StatusTooManyRequests: true,
	http.StatusPreconditionRequired: true, http.StatusPreconditionFailed: true, http.StatusNotAcceptable: true, http.StatusLengthRequired: true,
	http.StatusUnsupportedMediaType: true, http.StatusRequestedRangeNotSatisfiable: true, http.StatusExpectationFailed: true,
	http.StatusRequestHeaderFieldsTooLarge: true,
}

// completesWith reports whether a response is the answer to a request that need
// not run again. A server error, a repeatable client error and any other one
// with Retry-After let the client's retry run: the last is also what a wrapper
// inside the handler answers if its lock is held. A response below 200 is not
// final, and without a valid status the gateway sends a server error of its
// own.
func completesWith(doc []byte, gateway eventkind.Gateway) bool {
	status := statusOf(doc, gateway)
	if repeatable[status] || status >= http.StatusBadRequest && hasRetryAfter(doc) {
		return false
	}
	return status >= http.StatusOK && status < http.StatusInternalServerError
}

// hasRetryAfter reports whether a response has that header.
// https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func hasRetryAfter(doc []byte) bool {
	var r struct{ Headers, MultiValueHeaders map[string]json.RawMessage }
	_ = json.Unmarshal(doc, &r) // goes on after a field that is not an object
	for _, headers := range []map[string]json.RawMessage{r.Headers, r.MultiValueHeaders} {
		for name := range headers {
			if strings.EqualFold(name, "Retry-After") {
				return true
			}
		}
	}
	return false
}

// statusOf returns the status with which the gateway answers if the handler's
// result has this JSON form, or 0 if it answers with an error of its own. With
// payload format 2.0, JSON without a status is the body of a response with
// status 200.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html#http-api-develop-integrations-lambda.response
// https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads
// https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html#api-gateway-simple-proxy-for-lambda-output-format
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html#respond-to-load-balancer
func statusOf(doc []byte, gateway eventkind.Gateway) int {
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil && !json.Valid(doc) {
		return 0
	}
	code, ok := members["statusCode"]
	switch {
	case ok && string(code) != "null":
		return statusIn(code)
	case gateway == eventkind.Payload2:
		return http.StatusOK
	}
	return 0
}

// statusIn returns a status that is written as a number or as a string.
func statusIn(code json.RawMessage) int {
	text := string(code)
	if json.Unmarshal(code, &text) != nil { // no string
		text = string(code)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != float64(int(f)) {
		return 0
	}
	return int(f)
}

// longestResult returns how long a result may be that the gateway gets. A
// longer one is an error for the client, whatever its status: Lambda refuses it
// with Function.ResponseSizeTooLarge, and a load balancer answers with status
// 502.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html
func longestResult(gateway eventkind.Gateway) int {
	if gateway == eventkind.LoadBalancer {
		return 1 << 20
	}
	return 6291556 // as the error of Lambda says
}

// response is what the responses of all gateways have in common. Its JSON form
// is that of a buffered response, also for one that was streamed.
type response struct {
	StatusCode        int                 `json:"statusCode"`
	StatusDescription string              `json:"statusDescription,omitempty"` // only load balancers
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	Cookies           []string            `json:"cookies,omitempty"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
	Streamed          streamKind          `json:"lambdalockStreamed,omitempty"` // a name that no result of the user's has
}

// streamKind is the type of a streamed response.
type streamKind string

const (
	notStreamed streamKind = ""
	urlStream   streamKind = "functionUrl"
	apiStream   streamKind = "restApi"
)

// newResponse returns a response for the gateway.
//
// A load balancer takes the headers from the field for which its target group
// is configured and fails if it is missing, so both are set, and hold something
// that does no harm where there is nothing to say.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html#multi-value-headers
func newResponse(gateway eventkind.Gateway, status int, headers map[string]string, body string) *response {
	if gateway == eventkind.LoadBalancer && len(headers) == 0 {
		headers = map[string]string{"Cache-Control": "no-store"}
	}
	r := &response{StatusCode: status, Headers: headers, Body: body}
	if gateway == eventkind.LoadBalancer {
		r.StatusDescription = strconv.Itoa(status) + " " + http.StatusText(status)
		r.MultiValueHeaders = map[string][]string{}
		for name, value := range headers {
			r.MultiValueHeaders[name] = []string{value}
		}
	}
	return r
}

// streamKindOf returns how a handler whose result has that type sends a
// response that is not streamed by itself.
func streamKindOf(result reflect.Type, gateway eventkind.Gateway) streamKind {
	switch {
	case result == nil || !result.Implements(readerType):
		return notStreamed
	case result == apiStreamType || result != urlStreamType && gateway == eventkind.Payload1:
		return apiStream
	}
	return urlStream
}

// encoded returns the JSON form, which text and numbers always have.
func (r *response) encoded() []byte {
	b, _ := json.Marshal(r)
	return b
}
