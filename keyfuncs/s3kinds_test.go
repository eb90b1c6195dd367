package keyfuncs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// s3Kind is a kind of S3 event and the sequencer that S3 gives it: one of its
// own to what writes or deletes an object, that of the upload to what happens
// to an existing object.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-event-types-and-destinations.html
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-mapping-troubleshooting.html
type s3Kind struct{ name, sequencer, bridge, reason string }

const upload = "0055AED6DCD90281F4"

var s3Kinds = []s3Kind{
	{"ObjectCreated:Put", upload, "Object Created", "PutObject"},
	{"ObjectCreated:Post", "0055AED6DCD90281F6", "Object Created", "POST Object"},
	{"ObjectCreated:Copy", "0055AED6DCD90281F7", "Object Created", "CopyObject"},
	{"ObjectCreated:CompleteMultipartUpload", "0055AED6DCD90281F8", "Object Created", "CompleteMultipartUpload"},
	{"ObjectRemoved:Delete", "0055AED6DCD90281F9", "Object Deleted", "DeleteObject"},
	{"ObjectRemoved:DeleteMarkerCreated", "0055AED6DCD90281FA", "Object Deleted", "DeleteObject"},
	{"ObjectRestore:Post", upload, "Object Restore Initiated", ""},
	{"ObjectRestore:Completed", upload, "Object Restore Completed", ""},
	{"ObjectRestore:Delete", upload, "Object Restore Expired", ""},
	{"Replication:OperationFailedReplication", upload, "", ""},
	{"Replication:OperationMissedThreshold", upload, "", ""},
	{"Replication:OperationReplicatedAfterThreshold", upload, "", ""},
	{"Replication:OperationNotTracked", upload, "", ""},
	{"LifecycleExpiration:Delete", upload, "Object Deleted", "Lifecycle Expiration"},
	{"LifecycleExpiration:DeleteMarkerCreated", upload, "Object Deleted", "Lifecycle Expiration"},
	{"LifecycleTransition", upload, "Object Storage Class Changed", ""},
	{"IntelligentTiering", upload, "Object Access Tier Changed", ""},
	{"ObjectTagging:Put", upload, "Object Tags Added", ""},
	{"ObjectTagging:Delete", upload, "Object Tags Deleted", ""},
	{"ObjectAcl:Put", upload, "Object ACL Updated", ""},
	{"ReducedRedundancyLostObject", upload, "", ""},
	{"KindOfTheFuture", upload, "Object Something", ""},
}

func (k s3Kind) uploads() bool {
	return strings.HasPrefix(k.name, "ObjectCreated:") || strings.HasPrefix(k.name, "ObjectRemoved:")
}

// notification returns the JSON of a notification of that kind, which S3
// sometimes spells with a prefix. Request ids differ, as those of two requests
// do.
func (k s3Kind) notification(t *testing.T, prefix string) string {
	t.Helper()
	e := load[events.S3Event](t, "s3-put.json")
	r := &e.Records[0]
	r.EventName, r.S3.Object.Sequencer = prefix+k.name, k.sequencer
	r.ResponseElements = map[string]string{"x-amz-request-id": "request of " + k.name}
	return marshal(t, e)
}

// bridged returns the same event as S3 sends it to EventBridge.
func (k s3Kind) bridged(t *testing.T) string {
	t.Helper()
	var detail map[string]any
	e := load[events.EventBridgeEvent](t, "eventbridge-s3.json")
	expect.Must(t, json.Unmarshal(e.Detail, &detail))
	detail["object"].(map[string]any)["sequencer"] = k.sequencer
	detail["reason"], detail["request-id"] = k.reason, "request of "+k.name
	e.DetailType, e.Detail = k.bridge, json.RawMessage(marshal(t, detail))
	return marshal(t, e)
}

// keyOfText returns the key of an event.
func keyOfText[E any](t *testing.T, text string, key keyfuncs.Func[E]) lock.Key {
	t.Helper()
	k, err := key(t.Context(), decoded[E](t, text))
	if err != nil {
		t.Errorf("%.300s: %v", text, err)
	}
	return k
}

// ways returns the keys of a notification on all ways that it takes to a
// function.
func ways(t *testing.T, notification string) map[string]lock.Key {
	t.Helper()
	queue := func(body string) string {
		return marshal(t, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "sqs", EventSource: "aws:sqs", Body: body}}})
	}
	topic := marshal(t, events.SNSEvent{Records: []events.SNSEventRecord{{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: "sns", Message: notification}}}})
	body := keyfuncs.Single[events.SQSEvent](keyfuncs.SQSBody(keyfuncs.S3Object))
	return map[string]lock.Key{
		"directly":        keyOfText(t, notification, keyfuncs.S3Object),
		"SQS":             keyOfText(t, queue(notification), body),
		"SNS":             keyOfText(t, topic, keyfuncs.Single[events.SNSEvent](keyfuncs.SNSBody(keyfuncs.S3Object))),
		"SNS and SQS":     keyOfText(t, queue(published(t, notification)), keyfuncs.Single[events.SQSEvent](keyfuncs.SQSBody(keyfuncs.SNSBody(keyfuncs.S3Object)))),
		"SNS and SQS raw": keyOfText(t, queue(notification), body),
	}
}

// TestS3KindsAreDifferentEvents: what happens to an upload after it is not the
// upload again, although S3 repeats the sequencer.
func TestS3KindsAreDifferentEvents(t *testing.T) { // F51
	t.Parallel()
	seen, bridged := map[string]string{}, map[string]string{}
	for _, kind := range s3Kinds {
		t.Run(kind.name, func(t *testing.T) {
			want := ways(t, kind.notification(t, ""))["directly"]
			if other, ok := seen[want.Event]; ok || want.Event == "" {
				t.Errorf("event %q, which is that of %s", want.Event, other)
			}
			seen[want.Event] = kind.name
			if kind.uploads() != (want.Event == kind.sequencer) {
				t.Errorf("event %q", want.Event)
			}
			for _, prefix := range []string{"", "s3:"} { // also: a second delivery
				for way, k := range ways(t, kind.notification(t, prefix)) {
					if k != want {
						t.Errorf("prefix %q, %s: %+v, want %+v", prefix, way, k, want)
					}
				}
			}
			if kind.bridge == "" { // not sent to EventBridge
				return
			}
			k := keyOfText(t, kind.bridged(t), keyfuncs.EventBridgeS3Object)
			if other, ok := bridged[k.Event]; ok || k.Event == "" {
				t.Errorf("EventBridge: event %q, which is that of %s", k.Event, other)
			}
			bridged[k.Event] = kind.name
			if again := keyOfText(t, kind.bridged(t), keyfuncs.EventBridgeS3Object); again != k {
				t.Errorf("EventBridge: %+v, then %+v", k, again)
			}
			if kind.uploads() && k != want {
				t.Errorf("EventBridge: %+v, want %+v", k, want)
			}
		})
	}
}

// TestS3LatestHandlesOtherKinds: a restore 17 days after the upload is not
// stale, and has no place among uploads.
func TestS3LatestHandlesOtherKinds(t *testing.T) { // F51
	t.Parallel()
	for _, kind := range s3Kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			k := keyOfText(t, kind.notification(t, ""), s3Latest)
			// The events here have a version id.
			if kind.uploads() && kind.name != "ObjectRemoved:Delete" != (k.Order != "") {
				t.Errorf("order %q", k.Order)
			}
			if want := keyOfText(t, kind.notification(t, ""), keyfuncs.S3Object); k.Name != want.Name || k.Event != want.Event {
				t.Errorf("%+v, but S3Object gives %+v", k, want)
			}
		})
	}
	gives(t, "s3-tagging.json", s3Latest, lock.Key{
		Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "ObjectTagging:Put/096fKKXTRTtl3on89fVO.nfljtsv6qko/C3D13FE58DE4C810",
	})
}

// TestS3DeletionOfAVersion: an old version that is deleted, for good, is not
// the newest state of its object, and makes no upload stale. A delete marker
// is, and so is a deletion in a bucket without versions.
func TestS3DeletionOfAVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, version string
		ordered       bool
	}{
		{"ObjectRemoved:Delete", "096fKKXTRTtl3on89fVO.nfljtsv6qko", false},
		{"s3:ObjectRemoved:Delete", "096fKKXTRTtl3on89fVO.nfljtsv6qko", false},
		{"ObjectRemoved:Delete", "null", false}, // what was uploaded before there were versions
		{"ObjectRemoved:Delete", "", true},
		{"ObjectRemoved:DeleteMarkerCreated", "096fKKXTRTtl3on89fVO.nfljtsv6qko", true},
		{"ObjectCreated:Put", "096fKKXTRTtl3on89fVO.nfljtsv6qko", true},
	} {
		t.Run(c.name+" "+c.version, func(t *testing.T) {
			t.Parallel()
			k, err := changed(t, "s3-put.json", s3Latest, func(e *events.S3Event) {
				e.Records[0].EventName, e.Records[0].S3.Object.VersionID = c.name, c.version
			})
			if err != nil || k.Event != upload || (k.Order != "") != c.ordered {
				t.Errorf("%+v, %v; in order: want %v", k, err, c.ordered)
			}
		})
	}
}

// TestS3Samples: the events that AWS shows in its documentation.
func TestS3Samples(t *testing.T) {
	t.Parallel()
	gives(t, "s3-replication.json", keyfuncs.S3Object, lock.Key{
		Name:  "s3/amzn-s3-demo-bucket1/replication-test.png",
		Event: "Replication:OperationFailedReplication/0066DA1CBF104C0D51/abcdeH0Xp66ep__QDjR76LK7Gc9X4wKO/123bf045-2b4b-4ca8-a211-c34a63c59426",
	})
	gives(t, "s3-restore.json", keyfuncs.S3Object, lock.Key{
		Name:  "s3/example-bucket/glacier-test.txt",
		Event: "ObjectRestore:Completed/abcdeH0Xp66ep__QDjR76LK7Gc9X4wKO/EXAMPLE123456789",
	})
	gives(t, "s3-lifecycle.json", keyfuncs.S3Object, lock.Key{
		Name: "s3/example-bucket/lifecycle-test.dat", Event: "LifecycleTransition/0066LIFECYCLE890/lifecycleVersion123/LIFECYCLE123456789",
	})
	gives(t, "s3-intelligenttier.json", keyfuncs.S3Object, lock.Key{
		Name: "s3/example-bucket/intelligent-tier-test.dat", Event: "IntelligentTiering:TransitionAccess/0066ABC1234567890/versionExample123/EXAMPLE123456789",
	})
	gives(t, "s3-tagging.json", keyfuncs.S3Object, lock.Key{
		Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "ObjectTagging:Put/096fKKXTRTtl3on89fVO.nfljtsv6qko/C3D13FE58DE4C810",
	})
	gives(t, "eventbridge-s3-restore.json", keyfuncs.EventBridgeS3Object, lock.Key{
		Name: "s3/amzn-s3-demo-bucket1/example-key", Event: "Object%20Restore%20Completed/KKsjUC1.6gIjqtvhfg5AdMI0eCePIiT3/189F19CB7FB1B6A4",
	})
	gives(t, "eventbridge-s3-expired.json", keyfuncs.EventBridgeS3Object, lock.Key{
		Name: "s3/amzn-s3-demo-bucket1/example-key", Event: "Object%20Deleted/617b398000000000/mtB0cV.jejK63XkRNceanNMC.qXPWLeK/20EB74C14654DC47",
	})
}

// TestS3WithoutEventName: S3 names every event. Without a name, everything else
// that tells an event apart counts; an event built by hand may have a sequencer
// alone.
func TestS3WithoutEventName(t *testing.T) {
	t.Parallel()
	record := func(sequencer, version, request string) events.S3EventRecord {
		var r events.S3EventRecord
		r.S3.Bucket.Name, r.S3.Object.Key, r.S3.Object.Sequencer, r.S3.Object.VersionID = "b", "k", sequencer, version
		if request != "" {
			r.ResponseElements = map[string]string{"x-amz-request-id": request}
		}
		return r
	}
	if k, err := keyfuncs.S3LatestRecord(t.Context(), record("01", "", "")); k != (lock.Key{Name: "s3/b/k", Event: "01", Order: "s01"}) || err != nil {
		t.Errorf("a sequencer alone: %+v, %v", k, err)
	}
	bridged := events.EventBridgeEvent{Source: "aws.s3", Detail: json.RawMessage(`{"bucket":{"name":"b"},"object":{"key":"k","sequencer":"01"}}`)}
	if k, err := keyfuncs.EventBridgeS3Object(t.Context(), bridged); k != (lock.Key{Name: "s3/b/k", Event: "01"}) || err != nil {
		t.Errorf("a sequencer alone, from EventBridge: %+v, %v", k, err)
	}
	tagging := record("01", "", "")
	tagging.EventName = "ObjectTagging:Put"
	keys := map[string]func() (lock.Key, error){
		"of another kind": func() (lock.Key, error) { return keyfuncs.S3Record(t.Context(), tagging) },
	}
	for _, c := range [][3]string{{"01"}, {"02"}, {"01", "", "r1"}, {"01", "", "r2"}, {"01", "v1", ""}, {"01", "r1", ""}, {"01", "v1", "r1"}} {
		keys[strings.Join(c[:], " ")] = func() (lock.Key, error) {
			return keyfuncs.S3Record(t.Context(), record(c[0], c[1], c[2]))
		}
	}
	distinct(t, keys)
}
