package eventkind

import (
	"encoding/json"
	"strings"
)

// PointerRefusal is why no key is taken from the pointer to a large body.
const PointerRefusal = "is a pointer to an object of S3, which an extended client library of SQS or SNS put in place of a large body: take the key from the message, with SQSMessage or SNSRecord, and fetch the object in the handler"

// IsPointer recognises what the libraries for large messages send: a list of
// the name of a class and the place of the object.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-managing-large-messages.html
// https://github.com/awslabs/payload-offloading-java-common-lib-for-aws
func IsPointer(text []byte) bool {
	var parts []json.RawMessage
	var class string
	return json.Unmarshal(text, &parts) == nil && len(parts) == 2 && json.Unmarshal(parts[0], &class) == nil && strings.HasSuffix(class, "S3Pointer")
}
