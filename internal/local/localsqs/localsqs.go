// Package localsqs answers what a function asks SQS for while its messages are
// delivered without SQS, and refuses what SQS does.
package localsqs

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/local/sqslimits"
)

// Server calls a function for what SQS would do with a message: keep it
// invisible for so long from now on, delete it, take a new one. A message is
// known by the receipt handle with which it was delivered.
//
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_Operations.html
type Server struct {
	Change func(receipt string, invisible time.Duration)
	Delete func(receipt string)
	Send   func(*sqslimits.Message)
}

// request has the parameters of all operations.
type request struct {
	entry
	QueueURL               string `json:"QueueUrl"`
	MessageBody            string
	MessageGroupID         *string `json:"MessageGroupId"`
	MessageDeduplicationID *string `json:"MessageDeduplicationId"`
	MessageAttributes      map[string]struct {
		DataType, StringValue string
		BinaryValue           []byte
	}
	Entries []entry
}

// entry is what a request says of one message.
type entry struct {
	ID                *string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout int32 // in seconds
}

// ServeHTTP answers a request of the JSON protocol.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-json-faqs.html
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in request
	var answer any
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 2*sqslimits.Largest)).Decode(&in)
	if err == nil {
		answer, err = s.do(strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."), &in)
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

func (s *Server) do(operation string, in *request) (any, error) {
	switch operation {
	case "ChangeMessageVisibility":
		return struct{}{}, s.change(&in.entry)
	case "ChangeMessageVisibilityBatch":
		return each(in.Entries, s.change)
	case "DeleteMessage":
		return struct{}{}, s.delete(&in.entry)
	case "DeleteMessageBatch":
		return each(in.Entries, s.delete)
	case "SendMessage":
		return s.send(in)
	}
	return nil, &smithy.GenericAPIError{Code: "UnsupportedOperation", Message: "the local SQS has no " + operation + ": set AWS_ENDPOINT_URL_SQS to a server that has it"}
}

// each calls f for the entries of a batch.
func each(entries []entry, f func(*entry) error) (any, error) {
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

func (s *Server) change(e *entry) error {
	if err := sqslimits.Change(e.ReceiptHandle, e.VisibilityTimeout); err != nil {
		return err
	}
	s.Change(e.ReceiptHandle, time.Duration(e.VisibilityTimeout)*time.Second)
	return nil
}

func (s *Server) delete(e *entry) error {
	if err := sqslimits.Change(e.ReceiptHandle, 0); err != nil {
		return err
	}
	s.Delete(e.ReceiptHandle)
	return nil
}

// send takes a message, which no function receives.
func (s *Server) send(in *request) (any, error) {
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
	s.Send(&m)
	sum := md5.Sum([]byte(in.MessageBody)) //nolint:gosec // the client compares it
	return map[string]string{"MessageId": rand.Text(), "MD5OfMessageBody": hex.EncodeToString(sum[:])}, nil
}
