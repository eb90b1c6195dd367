package eventkind

import (
	"bytes"
	"encoding/json"
	"strings"
)

// PointerRefusal is why no key is taken from the pointer to a large body.
const PointerRefusal = "is a pointer to an object of S3, which an extended client library of SQS or SNS put in place of a large body: take the key from the message, with SQSMessage or SNSRecord, and fetch the object in the handler"

// pointerAttributes are the message attributes with which the libraries mark a
// message whose body is such a pointer.
// https://github.com/awslabs/amazon-sqs-java-extended-client-lib
// https://github.com/dvla/sqs-extended-client
var pointerAttributes = []string{"ExtendedPayloadSize", "SQSLargePayloadSize", "S3MessageBodyKey"}

// IsMarkedPointer reports whether a message has an attribute that marks its
// body as a pointer, whatever form that has.
func IsMarkedPointer[V any](attributes map[string]V) bool {
	for _, name := range pointerAttributes {
		if _, ok := attributes[name]; ok {
			return true
		}
	}
	return false
}

// IsPointer recognises what AWS's libraries for large messages send: a list of
// the name of a class and the place of the object.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-managing-large-messages.html
// https://github.com/awslabs/payload-offloading-java-common-lib-for-aws
func IsPointer(text []byte) bool {
	if !bytes.Contains(text, []byte("S3Pointer")) { // most texts
		return false
	}
	var parts []json.RawMessage
	var class string
	return json.Unmarshal(text, &parts) == nil && len(parts) == 2 && json.Unmarshal(parts[0], &class) == nil && strings.HasSuffix(class, "S3Pointer")
}

// IsPointerObject recognises what other libraries send: an object that holds a
// place in S3 and nothing else. A program of the user's may mean just that.
// https://github.com/timothymugayi/boto3-sqs-extended-client-lib/issues/7
// https://github.com/raol/amazon-sqs-net-extended-client-lib/issues/32
func IsPointerObject(text []byte) bool {
	if len(text) > 8<<10 { // the key of an object has up to 1 KB
		return false
	}
	var members map[string]any
	var place struct{ S3BucketName, S3Key string }
	return json.Unmarshal(text, &place) == nil && place.S3BucketName != "" && place.S3Key != "" &&
		json.Unmarshal(text, &members) == nil && len(members) == 2
}
