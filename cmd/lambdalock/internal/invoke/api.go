package invoke

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// api is the kind of API that sends an event.
type api string

// The kinds of APIs. HTTP APIs also have events of payload format 1.0, which
// look like those of REST APIs.
const (
	noAPI   api = ""
	restAPI api = "a REST API, or a load balancer"
	httpAPI api = "an HTTP API"
	urlAPI  api = "a Function URL"
)

// readAPI returns the kind of API that an event is from, see
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html.
func readAPI(payload []byte) api {
	var e struct {
		Version, HTTPMethod string
		RequestContext      *struct {
			DomainName string
			HTTP       *struct{ Method string }
		}
	}
	switch {
	case json.Unmarshal(payload, &e) != nil || e.RequestContext == nil:
		return noAPI
	case e.Version == "2.0" && e.RequestContext.HTTP != nil && strings.Contains(e.RequestContext.DomainName, ".lambda-url."):
		return urlAPI
	case e.Version == "2.0" && e.RequestContext.HTTP != nil:
		return httpAPI
	case e.HTTPMethod != "":
		return restAPI
	}
	return noAPI
}

// broken is the status that a client gets if the function failed, or returned
// what is not a response: 502 from a REST API, see
// https://repost.aws/knowledge-center/malformed-502-api-gateway, and from a
// load balancer, see
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-troubleshooting.html;
// 500 from an HTTP API, see
// https://repost.aws/knowledge-center/api-gateway-http-lambda-integrations.
func (a api) broken() int {
	if a == httpAPI {
		return http.StatusInternalServerError
	}
	return http.StatusBadGateway
}

// response is what a function returns to an API.
type response struct {
	status      int
	headers     map[string]string
	multiValues map[string][]string
}

func (v *response) read(payload []byte) error {
	return cmp.Or(
		eventsource.Member(payload, "statusCode", &v.status),
		eventsource.Member(payload, "headers", &v.headers),
		eventsource.Member(payload, "multiValueHeaders", &v.multiValues),
	)
}

// streamed is the content type of a response that begins with its status and
// headers in JSON, and eight zero bytes, see
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-custom.html#runtimes-custom-response-streaming.
const streamed = "application/vnd.awslambda.http-integration-response"

// readAnswer returns what the client of an API gets. With payload format 2.0,
// the API infers the status 200 for a result that has none, see
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html#http-api-develop-integrations-lambda.response.
func readAnswer(from api, r locallambda.Result) answer {
	var v response
	payload := r.Payload
	if strings.HasPrefix(r.ContentType, streamed) {
		payload, _, _ = bytes.Cut(payload, make([]byte, 8))
	}
	err := v.read(payload)
	inferred := from != restAPI && v.status == 0 && json.Valid(payload) && !hasStatus(payload)
	switch {
	case r.Outcome == locallambda.Succeeded && inferred:
		return answer{status: http.StatusOK}
	case r.Outcome != locallambda.Succeeded || err != nil || v.status < 100 || v.status > 599:
		return answer{status: from.broken()}
	}
	a := answer{status: v.status}
	for name, value := range v.headers {
		a.read(name, value)
	}
	for name, values := range v.multiValues {
		a.read(name, strings.Join(values, ","))
	}
	return a
}

func hasStatus(payload []byte) bool {
	var document map[string]json.RawMessage
	return json.Unmarshal(payload, &document) == nil && document["statusCode"] != nil
}

// read takes a Retry-After, which is in seconds or a date, see
// https://www.rfc-editor.org/rfc/rfc9110#field.retry-after.
func (a *answer) read(name, value string) {
	if !strings.EqualFold(name, "Retry-After") {
		return
	}
	if seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31); err == nil {
		a.says, a.retryAfter = true, time.Duration(seconds)*time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		a.says, a.retryAfter = true, max(0, time.Until(date)).Round(time.Second)
	}
}
