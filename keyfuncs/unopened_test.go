package keyfuncs_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// TestUnopenedEnvelope shows that a type of the user's which meets an envelope
// instead of what is in it is refused with what to do, and not taken for empty.
func TestUnopenedEnvelope(t *testing.T) {
	t.Parallel()
	type body struct {
		ID   string `json:"id"`
		Item int    `json:"item"`
	}
	type ownEnvelope struct {
		TopicArn, Message string
	}
	type ownEvent struct {
		Detail map[string]any `json:"detail"`
	}
	type dated struct {
		Timestamp, Time string
		Item            int
	}
	topic := `{"Type":"Notification","MessageId":"7e3a","TopicArn":"arn:aws:sns:us-east-2:123456789012:orders","Message":"{\"id\":\"17\"}","Timestamp":"2026-01-01T00:00:00Z"}`
	bus := `{"version":"0","id":"5c1d","detail-type":"order","source":"shop","account":"123456789012","time":"2026-01-01T00:00:00Z","region":"us-east-2","resources":[],"detail":{"id":"17"}}`
	const name = "n"
	for text, want := range map[string]string{topic: "raw message delivery", bus: "$.detail"} {
		_, err := inQueue(keyfuncs.SQSBody(constant[body](name)))(t.Context(), text)
		refused(t, "a body", err, "body", want)
		_, err = inQueue(keyfuncs.SQSBody(constant[*body](name)))(t.Context(), text)
		refused(t, "a pointer", err, "body", want)
		_, err = inQueue(keyfuncs.SQSBody(constant[dated](name)))(t.Context(), text)
		refused(t, "a body with a time", err, "body", want)
		for what, k := range map[string]lock.Key{
			"JSON": keyOf(t, inQueue(keyfuncs.SQSBody(constant[json.RawMessage](name))), text),
			"any":  keyOf(t, inQueue(keyfuncs.SQSBody(constant[any](name))), text),
			"map":  keyOf(t, inQueue(keyfuncs.SQSBody(constant[map[string]any](name))), text),
		} {
			if k.Name != name {
				t.Errorf("%s: %+v", what, k)
			}
		}
	}
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[ownEnvelope](name))), topic)
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[strictEnvelope](name))), topic)
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[ownEvent](name))), bus)
	keyOf(t, inQueue(keyfuncs.SQSBody(keyfuncs.EventBridgeDetail(constant[body](name)))), bus)
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[body](name))), `{"id":"17","item":1,"detail-type":"x"}`)
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[body](name))), `{"id":"17","item":1,"Type":"Notification","Message":"sold out"}`) // of no topic
	_, err := inQueue(keyfuncs.SQSBody(constant[*body](name)))(t.Context(), "null")
	refused(t, "a nil pointer", err, "body", "is null")
}

// TestOpenedByItsMembers shows that the members of a type decide whether it
// takes what an envelope carries. Values decide nothing, which may be zero, and
// a schedule carries nothing.
func TestOpenedByItsMembers(t *testing.T) {
	t.Parallel()
	type ownEvent struct {
		ID     string
		Detail struct {
			Retries int
			OK      bool
		}
	}
	type ownNotification struct {
		MessageID string
		Message   string
	}
	type event struct{ ID string }
	type order struct{ Item int }
	const name = "n"
	bus := func(detail string) string {
		return `{"id":"5c1d","detail-type":"Scheduled Event","source":"aws.scheduler","detail":` + detail + `}`
	}
	for _, detail := range []string{`{"retries":1,"ok":false}`, `{"retries":0,"ok":false}`, `{}`} {
		keyOf(t, inQueue(keyfuncs.SQSBody(constant[ownEvent](name))), bus(detail))
		keyOf(t, inQueue(keyfuncs.SQSBody(constant[*ownEvent](name))), bus(detail))
	}
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[ownNotification](name))), `{"Type":"Notification","MessageId":"7e3a","TopicArn":"arn","Message":""}`)
	for _, detail := range []string{`{ }`, `"{}"`} {
		keyOf(t, inQueue(keyfuncs.SQSBody(constant[event](name))), bus(detail))
		_, err := inQueue(keyfuncs.SQSBody(constant[order](name)))(t.Context(), bus(detail))
		refused(t, "an order", err, "body", "is an EventBridge event")
	}
	_, err := inQueue(keyfuncs.SQSBody(constant[event](name)))(t.Context(), bus(`{"retries":0}`))
	refused(t, "a type without a detail", err, "body", "$.detail")
	_, err = inQueue(keyfuncs.SQSBody(constant[ownDecoder](name)))(t.Context(), bus(`{"retries":0}`))
	refused(t, "one that decodes itself", err, "body", "$.detail")
}

// ownDecoder takes only an id, which encoding/json does not know.
type ownDecoder struct{ id string }

func (d *ownDecoder) UnmarshalJSON(text []byte) error {
	var e struct{ ID string }
	err := json.Unmarshal(text, &e)
	d.id = e.ID
	return err
}

// strictEnvelope is the message in a notification, and refuses one of no topic.
type strictEnvelope string

func (s *strictEnvelope) UnmarshalJSON(text []byte) error {
	var n struct{ TopicArn, Message string }
	if err := json.Unmarshal(text, &n); err != nil || n.TopicArn == "" {
		return errors.New("of no topic")
	}
	*s = strictEnvelope(n.Message)
	return nil
}

// TestBodyOfAnotherKind shows that the same holds for every event that a body
// can be: a type of the user's which takes nothing of it would be empty.
func TestBodyOfAnotherKind(t *testing.T) {
	t.Parallel()
	type order struct {
		ID string `json:"id"`
	}
	type ownNotification struct {
		Records []struct {
			S3 struct{ Bucket struct{ Name string } }
		}
	}
	type ownFailure struct {
		Payload map[string]any `json:"requestPayload"`
	}
	type ownBatch struct {
		Records []order
	}
	const name = "n"
	s3 := load[events.SQSEvent](t, "sqs-s3.json").Records[0].Body
	for field, key := range map[string]keyfuncs.Func[string]{
		"body":         inQueue(keyfuncs.SQSBody(constant[order](name))),
		"Sns.Message":  inTopic(keyfuncs.SNSBody(constant[order](name))),
		"kinesis.data": inStream(keyfuncs.KinesisBody(constant[order](name))),
	} {
		_, err := key(t.Context(), s3)
		refused(t, "S3 in "+field, err, field, "holds an S3 notification, of which keyfuncs_test.order takes nothing: its key function is ")
	}
	failed := string(expect.Value(os.ReadFile("testdata/invocationrecord.json"))(t))
	_, err := inQueue(keyfuncs.SQSBody(constant[*order](name)))(t.Context(), failed)
	refused(t, "an invocation record", err, "body", "its key function is SQSBody(services.InvocationRecord)")
	ofBus := strings.Replace(failed, `"orders"`, `"detail-type"`, 1)
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[ownFailure](name))), ofBus)

	keyOf(t, inQueue(keyfuncs.SQSBody(constant[ownNotification](name))), s3)
	// The s3:TestEvent comes before the events that a type is for.
	test := load[events.SQSEvent](t, "sqs-s3-test.json").Records[0].Body
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[struct{ Event string }](name))), test)
	for what, key := range map[string]keyfuncs.Func[events.SQSMessage]{
		"order": keyfuncs.SQSBody(constant[order](name)), "own type": keyfuncs.SQSBody(constant[*ownNotification](name)),
	} {
		if _, err := inQueue(key)(t.Context(), test); !errors.Is(err, keyfuncs.ErrIgnore) {
			t.Errorf("the s3:TestEvent for an %s: %v, want ErrIgnore", what, err)
		}
	}
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[ownBatch](name))), `{"Records":[{"id":"17","s3":{}}]}`)
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[events.S3Event](name))), s3)
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[any](name))), s3)
	keyOf(t, inQueue(keyfuncs.SQSBody(constant[order](name))), `{"Records":[]}`)
}

func constant[E any](name string) keyfuncs.Func[E] {
	return func(context.Context, E) (lock.Key, error) { return lock.Key{Name: name, Event: "e"}, nil }
}
