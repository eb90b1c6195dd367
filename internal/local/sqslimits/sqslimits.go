// Package sqslimits has what SQS refuses, for the fakes of it in several
// modules.
package sqslimits

import (
	"regexp"
	"strings"

	"github.com/aws/smithy-go"
)

const (
	// Largest is how many bytes a message has at most, and so has a batch.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	Largest          = 1 << 20
	entries          = 10
	attributes       = 10
	longestInvisible = 12 * 60 * 60 // in seconds
	longestWait      = 20           // in seconds
)

var (
	batchID       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,256}$`)
	attributeType = regexp.MustCompile(`^(String|Number|Binary)(\..+)?$`)
	// token is a group, or a deduplication id.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
	token = regexp.MustCompile(`^[!-~]{1,128}$`)
	// unreadable is what no message may contain.
	unreadable = regexp.MustCompile(`[^\x09\x0a\x0d\x20-\x{d7ff}\x{e000}-\x{fffd}\x{10000}-\x{10ffff}]`)
)

func refusal(code, message string) error {
	return &smithy.GenericAPIError{Code: code, Message: message, Fault: smithy.FaultClient}
}

func invalid(why string) error { return refusal("InvalidParameterValue", why) }

// Batch returns the error with which SQS refuses a whole batch, with the ids of
// its entries and the size of its messages, or nil.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
func Batch(ids []*string, size int) error {
	const prefix = "AWS.SimpleQueueService."
	seen := map[string]bool{}
	for _, id := range ids {
		switch {
		case id == nil || !batchID.MatchString(*id):
			return refusal(prefix+"InvalidBatchEntryId", "a batch entry id can only contain alphanumeric characters, hyphens and underscores")
		case seen[*id]:
			return refusal(prefix+"BatchEntryIdsNotDistinct", "Id "+*id+" repeated.")
		}
		seen[*id] = true
	}
	switch {
	case len(ids) == 0:
		return refusal(prefix+"EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(ids) > entries:
		return refusal(prefix+"TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10.")
	case size > Largest:
		return refusal(prefix+"BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes.")
	}
	return nil
}

// Receive returns the error with which SQS refuses to receive so many messages,
// or nil. A client that asks for none gets one.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
func Receive(messages, invisible, wait int32) error {
	switch {
	case messages < 1 || messages > entries:
		return invalid("Value for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.")
	case wait < 0 || wait > longestWait:
		return invalid("Value for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.")
	}
	return Change("a receipt", invisible)
}

// Change returns the error with which SQS refuses to make a message invisible
// for so many seconds, or nil.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
func Change(receipt string, invisible int32) error {
	switch {
	case receipt == "":
		return refusal("ReceiptHandleIsInvalid", "The receipt handle is empty.")
	case invisible < 0 || invisible > longestInvisible:
		return invalid("Value for parameter VisibilityTimeout is invalid. Reason: VisibilityTimeout must be an integer between 0 and 43200.")
	}
	return nil
}

// Message is one that is sent.
type Message struct {
	Queue, Body          string
	Attributes, System   map[string]Attribute
	Group, Deduplication *string
}

// Attribute is one of a message.
type Attribute struct {
	Type, Text string
	Binary     []byte
}

// Size returns how many bytes SQS counts: attributes that the system sets have
// none.
func (m *Message) Size() int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		n += len(name) + len(a.Type) + len(a.Text) + len(a.Binary)
	}
	return n
}

// Refusal returns the error with which a queue that takes so many bytes refuses
// the message, or nil.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func (m *Message) Refusal(most int) error {
	fifo := strings.HasSuffix(m.Queue, ".fifo")
	switch {
	case m.Body == "":
		return refusal("MissingParameter", "The request must contain the parameter MessageBody.")
	case unreadable.MatchString(m.Body):
		return refusal("InvalidMessageContents", "Invalid binary character in the message body.")
	case m.Size() > most:
		return invalid("One or more parameters are invalid. Reason: Message must be shorter than the queue's maximum.")
	case len(m.Attributes) > attributes:
		return invalid("Number of message attributes exceeds the allowed maximum [10].")
	case fifo && (m.Group == nil || m.Deduplication == nil):
		return refusal("MissingParameter", "The request must contain the parameter MessageGroupId, and the queue has no ContentBasedDeduplication.")
	case !fifo && m.Deduplication != nil:
		return invalid("The request includes a parameter that is not valid for this queue type.")
	}
	for _, t := range []*string{m.Group, m.Deduplication} {
		if t != nil && !token.MatchString(*t) {
			return invalid("Value " + *t + " for a parameter is invalid. It can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}
	}
	for name, a := range m.Attributes {
		if !attributeName.MatchString(name) || !a.valid() {
			return invalid("The message attribute '" + name + "' is not valid.")
		}
	}
	for name, a := range m.System {
		if name != "AWSTraceHeader" || a.Type != "String" || !a.valid() {
			return invalid("The message system attribute '" + name + "' is not valid.")
		}
	}
	return nil
}

func (a *Attribute) valid() bool {
	binary := strings.HasPrefix(a.Type, "Binary")
	return attributeType.MatchString(a.Type) && binary == (a.Text == "") && binary == (len(a.Binary) > 0) && !unreadable.MatchString(a.Text)
}
