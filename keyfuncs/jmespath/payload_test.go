package jmespath_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
)

// short names a case by its text.
func short(text string) string { return fmt.Sprintf("%.60q", text) }

func nested(depth int) string {
	return strings.Repeat(`{"a":[`, depth/2) + strings.Repeat("[", depth%2) + strings.Repeat("]", depth%2) + strings.Repeat("]}", depth/2)
}

func TestPayload(t *testing.T) {
	t.Parallel()
	for name, digest := range map[string]string{
		"payload-order.json":  "ZexamZhPNCIRG9l-3HCcH8ESyaV_s9fzwMcfaSEBn8Q",
		"payload-nested.json": "flTJacLCOgOoZhIir4UAckAIxh-y8mk92XuJmt3uUaw",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := expect.Value(os.ReadFile("testdata/" + name))(t)
			want := lock.Key{Name: "payload/" + digest, Event: digest}
			if k, err := jmespath.Payload(t.Context(), b); k != want || err != nil {
				t.Errorf("%+v, %v; want %+v", k, err, want)
			}
			var spaced bytes.Buffer
			expect.Must(t, json.Indent(&spaced, b, "\t", " "))
			if k, err := jmespath.Payload(t.Context(), spaced.Bytes()); k != want || err != nil {
				t.Errorf("with other white space: %+v, %v; want %+v", k, err, want)
			}
		})
	}
}

func TestPayloadTellsApart(t *testing.T) { // F28
	t.Parallel()
	seen := map[lock.Key]string{}
	for _, p := range []string{
		`12345678901234567890`, `12345678901234567891`, `-12345678901234567891`, `1e999999999999999999999`, `1e999999999999999999998`, `1e-999999999999999999999`,
		`0.1`, `0.1000000000000000055511151231257827`, `17`, `"17"`, `[17]`, `null`, `"null"`, `""`, `[]`, `{}`, `false`, `0`, `[[]]`, `[[],[]]`, `[{}]`, `[null]`,
		`{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":2}`, `{"a":1}`, `{"a":null}`, `{"a":1,"b":2}`, `{"a":{"b":1}}`, `{"a":[1,2]}`, `{"a":[2,1]}`, `{"A":1}`,
		`"\ufffd"`, `"\ud800"`, `"\ud801"`, `"\udc00"`, `"\udc00\ud800"`, `"\ud800\udc00"`, `"\\ud800"`, "\"\x80\"", "\"\x81\"", "\"\xff\"", "\"\xff\xff\"", "\"\xffud800\"",
		"\"\xff\\ud800\"", "\"\\ud800\xff\"", "\"\xed\xa0\x80\"", "\"\xed\xa0\x80\xed\xb0\x80\"", `"\\u0041"`, `"A"`, `"a"`, `"\u00e9"`, `"e\u0301"`,
		`{"\ud800":1}`, `{"\ud801":1}`, `{"\ufffd":1}`, "{\"\xed\xa0\x80\":1}", "{\"\xff\":1}", `{"\\ud800":1}`, `"a\",\"b"`, `["a","b"]`, `["a\",\"b"]`,
	} {
		k, err := jmespath.Payload(t.Context(), json.RawMessage(p))
		if other, ok := seen[k]; ok || err != nil {
			t.Errorf("%q and %q both give %+v, %v", p, other, k, err)
		}
		seen[k] = p
	}
}

// TestPayloadOfAnEvent: a digest of an event of AWS is another one for each
// delivery, or for each send, so nothing would be recognised.
func TestPayloadOfAnEvent(t *testing.T) { // F28
	t.Parallel()
	for file, says := range map[string]string{
		"sqs": "SQSMessage", "sns": "SNSRecord", "s3-put": "S3Object", "kinesis": "KinesisRecord", "kafka": "KafkaRecord", "apigateway-rest": "IdempotencyKey",
		"eventbridge": "EventBridgeDetail(jmespath.Payload)", "cloudformation": "services.CloudFormation",
	} {
		b, err := os.ReadFile("../testdata/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		_, err = jmespath.Payload(t.Context(), b)
		if e, ok := err.(*lock.NoKeyError); !ok || e.Field != "payload" || !strings.Contains(e.Error(), says) {
			t.Errorf("%s: %v, want a NoKeyError that says %q", file, err, says)
		}
	}
	for text, says := range map[string]string{
		`{"Type":"Notification","TopicArn":"t","MessageId":"m","Message":"{}"}`: "SNSBody(jmespath.Payload)",
		`{"s3BucketName":"b","s3Key":"k"}`:                                      "jmespath.Path",
		`{"S3Key":"k","S3BucketName":"b"}`:                                      "jmespath.Path",
		`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3Key":"k"}]`:  "extended client",
	} {
		_, err := jmespath.Payload(t.Context(), json.RawMessage(text))
		if e, ok := err.(*lock.NoKeyError); !ok || e.Field != "payload" || !strings.Contains(e.Error(), says) {
			t.Errorf("%s: %v, want a NoKeyError that says %q", text, err, says)
		}
	}
	for _, element := range []string{
		`{"messageId":"m","receiptHandle":"r","body":"{}","eventSource":"aws:sqs"}`, `{"eventSource":"aws:kinesis","data":"e30="}`,
		`{"id":"i","source":"s","detail-type":"t","detail":{}}`, `{"Data":{},"SystemMetadata":{}}`,
	} {
		_, err := jmespath.Payload(t.Context(), json.RawMessage(" ["+element+`,{"a":1}]`))
		if e, ok := err.(*lock.NoKeyError); !ok || e.Field != "payload" || e.Reason != eventkind.ArrayRefusal {
			t.Errorf("%s in an array: %v, want a NoKeyError about pipes", element, err)
		}
	}
	for _, text := range []string{`[]`, `[1]`, `["aws:sqs"]`, `[{"id":1}]`, `[[{"eventSource":"aws:sqs"}]]`, `{"s3BucketName":"b","s3Key":"k","more":1}`, `{"s3BucketName":"b","s3Key":1}`, `{"s3Key":"k"}`, `{"Records":[{"id":1}]}`, `{"detail":{}}`, `{"Message":"x"}`} {
		if _, err := jmespath.Payload(t.Context(), json.RawMessage(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPayloadIsNotJSON(t *testing.T) { // F26
	t.Parallel()
	for name, key := range map[string]keyfuncs.Func[json.RawMessage]{"Payload": jmespath.Payload, "Key": jmespath.Path("@")} {
		for _, p := range []string{
			"", " ", "{", `{"a":}`, "1 2", "{}x", "{} []", "01", "1.", "+1", "NaN", `"\x"`, `"\u12"`, "\"\n\"", "'a'", "\ufeff{}",
			nested(10_001), strings.Repeat("[", 1e6), strings.Repeat(`{"a":`, 1e6),
		} {
			t.Run(name+" "+short(p), func(t *testing.T) {
				t.Parallel()
				k, err := key(t.Context(), json.RawMessage(p))
				if e, ok := err.(*lock.NoKeyError); !ok || e.Field != "payload" || e.Reason != "is not JSON" || e.Err == nil || k != (lock.Key{}) {
					t.Errorf("%+v, %v; want a NoKeyError of payload", k, err)
				}
			})
		}
	}
}

// TestContentByMeaning shows that a request may be compared by what its body
// means, and by who sends it.
func TestContentByMeaning(t *testing.T) {
	t.Parallel()
	type request = events.APIGatewayV2HTTPRequest
	key := keyfuncs.PayloadFrom(keyfuncs.IdempotencyKey[request], keyfuncs.Join(
		keyfuncs.HTTPTarget[request], keyfuncs.HTTPBody[request](jmespath.Payload), keyfuncs.Caller[request]))
	of := func(path, body, token string) lock.Key {
		e := request{RawPath: path, Body: body, Headers: map[string]string{"idempotency-key": "k", "authorization": token}}
		e.RequestContext.APIID, e.RequestContext.HTTP.Method = "api", "POST"
		k, err := key(t.Context(), e)
		if err != nil {
			t.Error(err)
		}
		return k
	}
	first := of("/pay", `{"a":1,"b":2}`, "jane")
	if again := of("/pay", ` {"b":2.0, "a":1}`, "jane"); again != first {
		t.Errorf("%+v, want %+v", again, first)
	}
	for _, other := range []lock.Key{of("/pay", `{"a":1,"b":3}`, "jane"), of("/pay", `{"a":1,"b":2}`, "joe"), of("/refund", `{"a":1,"b":2}`, "jane")} {
		if other.Name != first.Name || other.Payload == first.Payload {
			t.Errorf("%+v and %+v", other, first)
		}
	}
}
