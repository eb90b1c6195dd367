package eventkind

import (
	"bytes"
	"fmt"
)

// KeyFunction returns what to use for an event in a message of carrier, which
// is SQS, SNS, Kinesis or EventBridge, or nil for a whole event.
func (k *Kind) KeyFunction(carrier *Kind) string {
	if carrier != nil && carrier.body != "" {
		switch k {
		case S3, S3Test:
			return carrier.body + "(S3Object)"
		case InvocationRecord:
			return carrier.body + "(services.InvocationRecord)"
		case EventBridge:
			return carrier.body + "(EventBridgeEvent), or " + carrier.body + "(EventBridgeS3Object) if it comes from S3"
		}
	}
	switch {
	case k.each == "":
		return k.key
	case k.whole != "":
		return k.whole + ", or " + k.key + " with middleware." + k.each
	case k.record == "":
		return k.key + ", with middleware." + k.each
	}
	return k.key + ", with middleware." + k.each + ", or in " + k.Single() + " for an event of one"
}

// Each returns the wrapper of package middleware for handlers of one record, or
// "" if key functions take the whole event.
func (k *Kind) Each() string { return k.each }

// Single returns the constructor for events of one record, or "" if it does not
// fit their type.
func (k *Kind) Single() string {
	if k.record == "" {
		return ""
	}
	return fmt.Sprintf("Single[%T]", k.types[0])
}

// Whole returns how one writes a key function of one record for an event that
// holds no other, or "" if there is no way.
func (k *Kind) Whole(key string) string {
	switch {
	case k.whole != "" && key == k.key:
		return k.whole
	case k.record == "":
		return ""
	}
	return k.Single() + "(" + key + ")"
}

// ArrayRefusal is why no key is taken from an array.
const ArrayRefusal = "is an array, as pipes and custom event buses of EventBridge send it: use EachEventBridgeEvent for such a bus, and see docs/SOURCES.md#eventbridge-pipes for a pipe"

// IsArray reports whether a JSON document is an array.
func IsArray(doc []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(doc), []byte("[")) }

// NoS3Records returns what is wrong with a document that should be an S3
// notification and has no records. It returns "" for the s3:TestEvent, which S3
// sends when a notification is set up, and which is not about any object.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
func NoS3Records(doc []byte, carrier *Kind) string {
	switch k := Of(doc); k {
	case S3Test:
		return ""
	case nil, S3:
		if IsArray(doc) {
			return ArrayRefusal
		}
		if carrier == EventBridge {
			return "holds no S3 notification: for events of S3 on EventBridge the key function is EventBridgeS3Object"
		}
		return "holds no S3 notification and no s3:TestEvent: `lambdalock explain` names the key function of what it is"
	default:
		return k.Refusal(carrier)
	}
}

// NoSNSMessage returns what to do if a message of k, the carrier, should hold
// what a topic puts there and does not. What it does hold is unknown.
func (k *Kind) NoSNSMessage() string {
	return "is not an SNS message: raw message delivery is on, or no topic sends here: leave SNSBody out, or in place of SNSRecord use " + k.key
}

// Refusal returns why an event of this kind is refused, and what to use
// instead.
func (k *Kind) Refusal(carrier *Kind) string {
	return "holds " + k.name + ": its key function is " + k.KeyFunction(carrier)
}
