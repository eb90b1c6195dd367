package invoke

import (
	"cmp"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/local/sqslimits"
)

// sqsAPI answers what a function asks SQS for: that a message comes back at
// another time, or not at all, and that another one is sent. A message is known
// by the receipt handle that the function got with it.
//
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_Operations.html
type sqsAPI struct {
	url    string
	server *http.Server

	mu      sync.Mutex
	changed map[string]time.Time // when a message comes back, by receipt handle
	deleted map[string]bool
	sent    map[string]int // messages, by queue
}

// startSQS serves the API on the loopback interface.
func startSQS() (*sqsAPI, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve a local SQS: %w", err)
	}
	a := &sqsAPI{url: "http://" + listener.Addr().String(), changed: map[string]time.Time{}, deleted: map[string]bool{}, sent: map[string]int{}}
	a.server = &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = a.server.Serve(listener) }() // ends with close
	return a, nil
}

// close ends the API, and writes a line for each queue that got messages.
func (a *sqsAPI) close(out io.Writer) {
	_ = a.server.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(a.sent)) {
		fmt.Fprintf(out, "sent: %s to %s\n", plural(a.sent[queue], "message"), oneLine(queue, longestAnswer))
	}
}

// env returns what the function needs to find the API, unless it was told of
// another one.
func (a *sqsAPI) env() []string {
	const variable = "AWS_ENDPOINT_URL_SQS"
	if cmp.Or(os.Getenv(variable), os.Getenv("AWS_ENDPOINT_URL")) != "" {
		return nil
	}
	return []string{variable + "=" + a.url}
}

// comesBack returns when the function wants a message back, if it said so.
func (a *sqsAPI) comesBack(m *record) (time.Time, bool) {
	if a == nil {
		return time.Time{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.changed[m.handle]
	return at, ok
}

// isDeleted reports whether the function has deleted a message.
func (a *sqsAPI) isDeleted(m *record) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.deleted[m.handle]
}

// sqsRequest has the parameters of all operations.
type sqsRequest struct {
	sqsEntry
	QueueURL               string `json:"QueueUrl"`
	MessageBody            string
	MessageGroupID         *string `json:"MessageGroupId"`
	MessageDeduplicationID *string `json:"MessageDeduplicationId"`
	MessageAttributes      map[string]struct {
		DataType, StringValue string
		BinaryValue           []byte
	}
	Entries []sqsEntry
}

// sqsEntry is what a request says of one message.
type sqsEntry struct {
	ID                *string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout int32 // in seconds
}

// ServeHTTP answers a request of the JSON protocol.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-json-faqs.html
func (a *sqsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in sqsRequest
	var answer any
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 2*sqslimits.Largest)).Decode(&in)
	if err == nil {
		answer, err = a.do(strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."), &in)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if err != nil {
		code, message := refusalOf(err)
		answer = map[string]string{"__type": "com.amazonaws.sqs#" + code, "message": message}
		w.WriteHeader(http.StatusBadRequest)
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone needs none
}

func refusalOf(err error) (code, message string) {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return refused.ErrorCode(), refused.ErrorMessage()
	}
	return "SerializationException", err.Error()
}

func (a *sqsAPI) do(operation string, in *sqsRequest) (any, error) {
	switch operation {
	case "ChangeMessageVisibility":
		return struct{}{}, a.change(&in.sqsEntry)
	case "ChangeMessageVisibilityBatch":
		return each(in.Entries, a.change)
	case "DeleteMessage":
		return struct{}{}, a.delete(&in.sqsEntry)
	case "DeleteMessageBatch":
		return each(in.Entries, a.delete)
	case "SendMessage":
		return a.send(in)
	}
	return nil, &smithy.GenericAPIError{Code: "UnsupportedOperation", Message: "lambdalock invoke has no " + operation + ": set AWS_ENDPOINT_URL_SQS to a server that has it"}
}

// each calls f for the entries of a batch.
func each(entries []sqsEntry, f func(*sqsEntry) error) (any, error) {
	var ids []*string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	if err := sqslimits.Batch(ids, 0); err != nil {
		return nil, err
	}
	succeeded, refused := []any{}, []any{}
	for _, e := range entries {
		if err := f(&e); err != nil {
			code, message := refusalOf(err)
			refused = append(refused, map[string]any{"Id": e.ID, "SenderFault": true, "Code": code, "Message": message})
		} else {
			succeeded = append(succeeded, map[string]any{"Id": e.ID})
		}
	}
	return map[string]any{"Successful": succeeded, "Failed": refused}, nil
}

func (a *sqsAPI) change(e *sqsEntry) error {
	if err := sqslimits.Change(e.ReceiptHandle, e.VisibilityTimeout); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed[e.ReceiptHandle] = time.Now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
	return nil
}

func (a *sqsAPI) delete(e *sqsEntry) error {
	if err := sqslimits.Change(e.ReceiptHandle, 0); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deleted[e.ReceiptHandle] = true
	return nil
}

// send counts a message that is sent. No function receives it.
func (a *sqsAPI) send(in *sqsRequest) (any, error) {
	m := sqslimits.Message{
		Queue: in.QueueURL, Body: in.MessageBody, Attributes: map[string]sqslimits.Attribute{},
		Group: in.MessageGroupID, Deduplication: in.MessageDeduplicationID,
	}
	for name, v := range in.MessageAttributes {
		m.Attributes[name] = sqslimits.Attribute{Type: v.DataType, Text: v.StringValue, Binary: v.BinaryValue}
	}
	if err := m.Refusal(sqslimits.Largest); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.sent[in.QueueURL]++
	a.mu.Unlock()
	sum := md5.Sum([]byte(in.MessageBody)) //nolint:gosec // the client compares it
	return map[string]string{"MessageId": rand.Text(), "MD5OfMessageBody": hex.EncodeToString(sum[:])}, nil
}
