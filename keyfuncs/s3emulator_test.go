package keyfuncs_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
)

// TestSampleSequencer shows that the uploads of an emulator are told apart,
// although all of them have one sequencer, and that a delivery is recognised.
// The one in the test events of AWS SAM would make every real upload stale.
func TestSampleSequencer(t *testing.T) { // F28
	t.Parallel()
	for _, sample := range []string{"0055AED6DCD90281E5", "0A1B2C3D4E5F678901", "0062E99A88DC407460"} {
		t.Run(sample, func(t *testing.T) {
			t.Parallel()
			testSample(t, sample)
		})
	}
}

func testSample(t *testing.T, sampleSequencer string) {
	t.Helper()
	record := func(sequencer, request, version string) events.S3EventRecord {
		e := load[events.S3Event](t, "s3-put.json")
		r := e.Records[0]
		r.S3.Object.Sequencer, r.S3.Object.VersionID = sequencer, version
		r.ResponseElements = map[string]string{"x-amz-request-id": request}
		return r
	}
	for name, key := range map[string]keyfuncs.Func[events.S3EventRecord]{"S3Record": keyfuncs.S3Record, "S3LatestRecord": keyfuncs.S3LatestRecord} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := keyOf(t, key, record(sampleSequencer, "r1", "")), keyOf(t, key, record(sampleSequencer, "r2", ""))
			if first.Name != second.Name || first.Event == second.Event || first.Order != "" || second.Order != "" {
				t.Errorf("two uploads are %+v and %+v", first, second)
			}
			if again := keyOf(t, key, record(sampleSequencer, "r1", "")); again != first {
				t.Errorf("a delivery is %+v, then %+v", first, again)
			}
			if a, b := keyOf(t, key, record(sampleSequencer, "", "v1")), keyOf(t, key, record(sampleSequencer, "", "v2")); a.Event == b.Event {
				t.Errorf("two versions are %+v and %+v", a, b)
			}
			if k := keyOf(t, key, record(sampleSequencer, "", "")); k.Event != sampleSequencer {
				t.Errorf("nothing but the sample is %+v", k)
			}
			if k := keyOf(t, key, record("0055AED6DCD90281F4", "r1", "")); k.Event != "0055AED6DCD90281F4" {
				t.Errorf("another sequencer is %+v", k)
			}
		})
	}
	bridged := func(request string) string {
		doc := text(t, "eventbridge-s3.json")
		e := decoded[events.EventBridgeEvent](t, doc)
		e.Detail = []byte(strings.NewReplacer("0055AED6DCD90281F4", sampleSequencer, `"request-id": "`, `"request-id": "`+request).Replace(string(e.Detail)))
		return keyOf(t, keyfuncs.EventBridgeS3Object, e).Event
	}
	if first, second := bridged("r1"), bridged("r2"); first == second {
		t.Errorf("two uploads are %s", first)
	}
}
