package keyfuncs_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// s3Latest is S3Object for the newest upload only.
var s3Latest = keyfuncs.Single[events.S3Event](keyfuncs.S3LatestRecord)

func TestS3(t *testing.T) {
	t.Parallel()
	put := load[events.S3Event](t, "s3-put.json")
	byHand := events.S3Event{Records: []events.S3EventRecord{put.Records[0]}}
	byHand.Records[0].S3.Object.URLDecodedKey = ""
	unescaped := events.S3Event{Records: []events.S3EventRecord{put.Records[0]}}
	unescaped.Records[0].S3.Object.Key = ""
	want := lock.Key{Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "0055AED6DCD90281F4"}
	ordered := want
	ordered.Order = "s0055AED6DCD90281F4"
	for name, c := range map[string]struct {
		key   keyfuncs.Func[events.S3Event]
		event events.S3Event
		want  lock.Key
	}{
		"S3Object":               {keyfuncs.S3Object, put, want},
		"S3Record":               {keyfuncs.Single[events.S3Event](keyfuncs.S3Record), put, want},
		"S3LatestRecord":         {s3Latest, put, ordered},
		"an event built by hand": {keyfuncs.S3Object, byHand, want},
		"without escapes":        {keyfuncs.S3Object, unescaped, want},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := c.key(t.Context(), c.event); got != c.want || err != nil {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestS3WithoutSequencer(t *testing.T) {
	t.Parallel()
	keys := map[string]func() (lock.Key, error){}
	for _, c := range [][3]string{
		{"ObjectRestore:Post", "v1", ""},
		{"ObjectRestore:Completed", "v1", ""},
		{"ObjectTagging:Put", "v1", ""},
		{"ObjectTagging:Put", "v1", "r1"},
		{"ObjectTagging:Put", "v1", "r2"},
		{"ObjectTagging:Put", "", "v1"},
		{"ObjectTagging:Put", "v1/r1", ""},
	} {
		r := events.S3EventRecord{EventName: c[0], ResponseElements: map[string]string{"x-amz-request-id": c[2]}}
		r.S3.Bucket.Name, r.S3.Object.Key, r.S3.Object.VersionID = "b", "k", c[1]
		keys[strings.Join(c[:], " ")] = func() (lock.Key, error) {
			k, err := keyfuncs.S3Record(t.Context(), r)
			if again, _ := keyfuncs.S3Record(t.Context(), r); again != k {
				t.Errorf("a duplicate has another key: %+v, %+v", k, again)
			}
			return lock.Key{Event: k.Event}, err
		}
	}
	distinct(t, keys)
}

func TestS3LatestOrders(t *testing.T) {
	t.Parallel()
	order := func(sequencer string) string {
		k := expect.Value(changed(t, "s3-put.json", s3Latest, func(e *events.S3Event) { e.Records[0].S3.Object.Sequencer = sequencer }))(t)
		return k.Order
	}
	for _, c := range []struct {
		a, b string
		cmp  int // as when the shorter is padded with zeros on the right
	}{
		{"12", "13", -1}, {"12", "120", 0}, {"12", "1201", -1}, {"121", "12", 1}, {"13", "1299", 1}, {"0", "000", 0}, {"00", "01", -1}, {"9", "A", -1}, {"0055AED6DCD90281F4", "0055AED6DCD90281F6", -1},
	} {
		t.Run(c.a+" against "+c.b, func(t *testing.T) {
			if got := strings.Compare(order(c.a), order(c.b)); got != c.cmp {
				t.Errorf("%d, want %d", got, c.cmp)
			}
		})
	}
}

func TestS3TestEvent(t *testing.T) { // F26
	t.Parallel()
	e := load[events.S3Event](t, "s3-test.json")
	for name, key := range map[string]keyfuncs.Func[events.S3Event]{"S3Object": keyfuncs.S3Object, "S3LatestRecord": s3Latest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, err := key(t.Context(), e)
			if !errors.Is(err, keyfuncs.ErrIgnore) || k != (lock.Key{}) || !strings.Contains(err.Error(), "or an event of another source") {
				t.Errorf("%+v, %v; want ErrIgnore, and that it may be another event", k, err)
			}
		})
	}
}

func TestS3Errors(t *testing.T) { // F26, F31
	t.Parallel()
	first := func(change func(*events.S3EventRecord)) func(*events.S3Event) {
		return func(e *events.S3Event) { change(&e.Records[0]) }
	}
	for name, c := range map[string]struct {
		key         keyfuncs.Func[events.S3Event]
		change      func(*events.S3Event)
		field, says string
	}{
		"no bucket":                 {keyfuncs.S3Object, first(func(r *events.S3EventRecord) { r.S3.Bucket.Name = "" }), "Records[0].s3.bucket.name", "missing"},
		"no bucket, for the latest": {s3Latest, first(func(r *events.S3EventRecord) { r.S3.Bucket.Name = "" }), "Records[0].s3.bucket.name", "missing"},
		"no object key": {keyfuncs.S3Object, first(func(r *events.S3EventRecord) {
			r.S3.Object.Key, r.S3.Object.URLDecodedKey = "", ""
		}), "Records[0].s3.object.key", "missing"},
		"malformed escape": {keyfuncs.S3Object, first(func(r *events.S3EventRecord) {
			r.S3.Object.Key, r.S3.Object.URLDecodedKey = "a%zz", ""
		}), "Records[0].s3.object.key", "URL-encoded"},
		"no identity": {keyfuncs.S3Object, first(func(r *events.S3EventRecord) {
			r.S3.Object.Sequencer, r.S3.Object.VersionID, r.ResponseElements = "", "", nil
		}), "Records[0].s3.object.sequencer", "versionId"},
		"no order": {s3Latest, first(func(r *events.S3EventRecord) { r.S3.Object.Sequencer = "" }), "Records[0].s3.object.sequencer", "S3Record"},
	} {
		_, err := changed(t, "s3-put.json", c.key, c.change)
		refused(t, name, err, c.field, c.says)
	}
}

// TestS3EveryWay: an upload has one key, whichever way its notification came.
func TestS3EveryWay(t *testing.T) {
	t.Parallel()
	want := lock.Key{Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "0055AED6DCD90281F4"}
	body, message := keyfuncs.Single[events.SQSEvent](keyfuncs.SQSBody(keyfuncs.S3Object)), keyfuncs.Single[events.SNSEvent](keyfuncs.SNSBody(keyfuncs.S3Object))
	both := keyfuncs.Single[events.SQSEvent](keyfuncs.SQSBody(keyfuncs.SNSBody(keyfuncs.S3Object)))
	gives(t, "s3-put.json", keyfuncs.S3Object, want)
	gives(t, "sqs-s3.json", body, want)
	gives(t, "sns-s3.json", message, want)
	gives(t, "sqs-sns-s3.json", both, want)
	gives(t, "eventbridge-s3.json", keyfuncs.EventBridgeS3Object, want)

	want.Order = "s0055AED6DCD90281F4"
	gives(t, "sqs-s3.json", keyfuncs.Single[events.SQSEvent](keyfuncs.SQSBody(s3Latest)), want)
	if _, err := changed(t, "sqs-s3-test.json", body, nil); !errors.Is(err, keyfuncs.ErrIgnore) {
		t.Errorf("an s3:TestEvent in a queue: %v, want ErrIgnore", err)
	}
	refuses(t, "sqs-s3.json", body, map[string]func(*events.SQSEvent){
		"Records[0].body": func(e *events.SQSEvent) { e.Records[0].Body = "{" },
		"Records[0].body.Records[0].s3.bucket.name": func(e *events.SQSEvent) {
			e.Records[0].Body = strings.Replace(e.Records[0].Body, `"pictures-example"`, `""`, 1)
		},
	})
	two := load[events.S3Event](t, "s3-put.json")
	two.Records = append(two.Records, two.Records[0])
	_, err := inQueue(keyfuncs.SQSBody(keyfuncs.S3Object))(t.Context(), marshal(t, two)) // F26
	refused(t, "two records in a message", err, "body.Records", "docs/SOURCES.md#s3-records-in-a-message")
	refuses(t, "sqs-s3.json", body, map[string]func(*events.SQSEvent){
		"Records[0].body": func(e *events.SQSEvent) { // F31
			e.Records[0].Body = strings.Replace(e.Records[0].Body, "holiday+2026", "%zz", 1)
		},
	})
	refuses(t, "sns-s3.json", message, map[string]func(*events.SNSEvent){
		"Records[0].Sns.Message": func(e *events.SNSEvent) { e.Records[0].SNS.Message = "" },
	})
	refuses(t, "sqs-sns-s3.json", both, map[string]func(*events.SQSEvent){
		"Records[0].body.Message": func(e *events.SQSEvent) { e.Records[0].Body = `{"Type":"Notification","Message":"[]"}` },
	})
}

func TestEventBridgeS3Object(t *testing.T) {
	t.Parallel()
	detail := func(d string) func(*events.EventBridgeEvent) {
		return func(e *events.EventBridgeEvent) { e.Detail = json.RawMessage(d) }
	}
	refuses(t, "eventbridge-s3.json", keyfuncs.EventBridgeS3Object, map[string]func(*events.EventBridgeEvent){
		"source":                  func(e *events.EventBridgeEvent) { e.Source = "aws.ec2" },
		"detail":                  func(e *events.EventBridgeEvent) { e.Detail = nil },
		"detail.bucket.name":      detail(`{}`),
		"detail.object.key":       detail(`{"bucket":{"name":"b"}}`),
		"detail.object.sequencer": detail(`{"bucket":{"name":"b"},"object":{"key":"k"}}`),
	})
	_, err := changed(t, "eventbridge-s3.json", keyfuncs.EventBridgeS3Object, func(e *events.EventBridgeEvent) {
		e.DetailType, e.Detail = "AWS API Call via CloudTrail", json.RawMessage(`{"eventSource":"s3.amazonaws.com","requestParameters":{"bucketName":"b","key":"k"}}`)
	})
	refused(t, "a call that CloudTrail reports", err, "detail-type", "EventBridgeEvent")
	gives(t, "eventbridge-s3-tags.json", keyfuncs.EventBridgeS3Object, lock.Key{
		Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "Object%20Tags%20Added/096fKKXTRTtl3on89fVO.nfljtsv6qko/D4E13FE58DE4C811",
	})
}
