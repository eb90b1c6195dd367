package eventkind

import (
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// FIFOGroup returns the message group within which a message keeps its order,
// or "" for a message of a standard queue, which may have message groups too.
// The name of a FIFO queue ends in .fifo, and only such a queue numbers its
// messages, which some emulators leave out.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
func FIFOGroup(m *events.SQSMessage) string {
	if !IsFIFO(m) {
		return ""
	}
	return m.EventSourceARN + " " + m.Attributes["MessageGroupId"]
}

// IsFIFO reports whether a message comes from a FIFO queue.
func IsFIFO(m *events.SQSMessage) bool {
	return strings.HasSuffix(m.EventSourceARN, ".fifo") || m.Attributes["SequenceNumber"] != ""
}
