package fault

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
)

// Dialect is how a service names its requests and words its errors, so that
// the clients of its vendor take them for the service's own. A request that
// cannot meet a conflict, such as a read, is throttled instead.
type Dialect interface {
	// Op returns the name of a request, as plans know it.
	Op(*http.Request) string
	// conflicts reports whether another write can be in the way of the
	// request.
	conflicts(*http.Request) bool
	// refusal returns the answer to a request that meets Throttle, Conflict,
	// Deny or Fail.
	refusal(r *http.Request, body []byte, f Fault) refusal
}

// The dialects.
var (
	DynamoDB Dialect = dynamoDB{} // requests are named by their operation, such as UpdateItem
	S3       Dialect = s3{}       // by their method, such as PUT
	Azure    Dialect = azure{}    // of blob storage: by their method, or by what they do with a lease, such as renew
)

// dynamoDB words its errors as package fakedynamo does.
type dynamoDB struct{}

func (dynamoDB) Op(r *http.Request) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return op
}

func (d dynamoDB) conflicts(r *http.Request) bool {
	switch d.Op(r) {
	case "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems":
		return true
	}
	return false
}

var dynamoFaults = map[Fault]fakedynamo.Fault{
	Throttle: fakedynamo.Throttle, Conflict: fakedynamo.Conflict, Deny: fakedynamo.Deny, Fail: fakedynamo.ApplyThen500,
}

func (d dynamoDB) refusal(r *http.Request, body []byte, f Fault) refusal {
	w := httptest.NewRecorder()
	dynamoFaults[f].Refuse(w, d.Op(r), body)
	header := map[string]string{}
	for name := range w.Header() {
		header[name] = w.Header().Get(name)
	}
	return refusal{w.Code, header, w.Body.Bytes()}
}

// xmlError is an error of a service that answers in XML.
type xmlError struct {
	status        int
	code, message string
}

func (e xmlError) body() []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header + "<Error><Code>" + e.code + "</Code><Message>")
	_ = xml.EscapeText(&b, []byte(e.message)) // a buffer takes everything
	b.WriteString("</Message><RequestId>INJECTED</RequestId></Error>")
	return b.Bytes()
}

// s3 words the errors of
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
type s3 struct{}

func (s3) Op(r *http.Request) string { return r.Method }

func (s3) conflicts(r *http.Request) bool { return r.Method == http.MethodPut }

var s3Errors = map[Fault]xmlError{
	Throttle: {503, "SlowDown", "Please reduce your request rate."},
	Conflict: {409, "ConditionalRequestConflict", "The conditional request cannot succeed due to a conflicting operation against this resource."},
	Deny:     {403, "AccessDenied", "Access Denied"},
	Fail:     {500, "InternalError", "We encountered an internal error. Please try again."},
}

func (s3) refusal(_ *http.Request, _ []byte, f Fault) refusal {
	e := s3Errors[f]
	return refusal{e.status, map[string]string{"Content-Type": "application/xml", "X-Amz-Request-Id": "INJECTED"}, e.body()}
}

// azure words the errors of
// https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes.
// It knows no other answer to a conflict than that the condition failed.
type azure struct{}

func (azure) Op(r *http.Request) string {
	for name, action := range r.Header { // which the SDK writes in lower case
		if strings.EqualFold(name, "X-Ms-Lease-Action") {
			return action[0]
		}
	}
	return r.Method
}

func (azure) conflicts(r *http.Request) bool {
	return r.Method == http.MethodPut && !r.URL.Query().Has("comp") // such as a lease
}

var azureErrors = map[Fault]xmlError{
	Throttle: {503, "ServerBusy", "The server is busy."},
	Conflict: {412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met."},
	Deny:     {403, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission."},
	Fail:     {500, "InternalError", "Server encountered an internal error. Please try again after some time."},
}

func (azure) refusal(_ *http.Request, _ []byte, f Fault) refusal {
	e := azureErrors[f]
	return refusal{e.status, map[string]string{"Content-Type": "application/xml", "X-Ms-Error-Code": e.code, "X-Ms-Request-Id": "INJECTED"}, e.body()}
}
