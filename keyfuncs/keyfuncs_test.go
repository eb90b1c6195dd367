package keyfuncs_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func load[E any](t *testing.T, name string) E {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var e E
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestS3(t *testing.T) {
	t.Parallel()
	put := load[events.S3Event](t, "s3-put.json")
	want := lock.Key{Name: "s3/pictures-example/holiday 2026/a+b&c é.jpg", Event: "0055AED6DCD90281E5"}
	if got, err := keyfuncs.S3Object(t.Context(), put); got != want || err != nil {
		t.Errorf("S3Object: %+v, %v; want %+v without an order", got, err, want)
	}
	if got, err := keyfuncs.S3Record(t.Context(), put.Records[0]); got != want || err != nil {
		t.Errorf("S3Record: %+v, %v", got, err)
	}
	want.Order = "s0055AED6DCD90281E5"
	if got, err := keyfuncs.S3Latest(t.Context(), put); got != want || err != nil {
		t.Errorf("S3Latest: %+v, %v", got, err)
	}
	byHand := put
	byHand.Records = []events.S3EventRecord{put.Records[0]}
	byHand.Records[0].S3.Object.URLDecodedKey = ""
	want.Order = ""
	if got, err := keyfuncs.S3Object(t.Context(), byHand); got != want || err != nil {
		t.Errorf("an event built without decoding JSON: %+v, %v", got, err)
	}
}

func TestS3WithoutSequencer(t *testing.T) {
	t.Parallel()
	record := func(event, version, request string) events.S3EventRecord {
		r := events.S3EventRecord{EventName: event, ResponseElements: map[string]string{"x-amz-request-id": request}}
		r.S3.Bucket.Name, r.S3.Object.Key, r.S3.Object.VersionID = "b", "k", version
		return r
	}
	seen := map[string]bool{}
	for _, r := range []events.S3EventRecord{
		record("ObjectRestore:Post", "v1", ""), record("ObjectRestore:Completed", "v1", ""), record("ObjectTagging:Put", "v1", ""),
		record("ObjectTagging:Put", "v1", "r1"), record("ObjectTagging:Put", "v1", "r2"), record("ObjectTagging:Put", "", "v1"), record("ObjectTagging:Put", "v1/r1", ""),
	} {
		k, err := keyfuncs.S3Record(t.Context(), r)
		if err != nil || seen[k.Event] {
			t.Errorf("%+v: event %q, %v: want one that no other has", r.EventName, k.Event, err)
		}
		seen[k.Event] = true
		if again, _ := keyfuncs.S3Record(t.Context(), r); again != k {
			t.Errorf("a duplicate has another key: %+v, %+v", k, again)
		}
	}
}

func TestS3LatestOrders(t *testing.T) {
	t.Parallel()
	order := func(sequencer string) string {
		e := load[events.S3Event](t, "s3-put.json")
		e.Records[0].S3.Object.Sequencer = sequencer
		k, err := keyfuncs.S3Latest(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return k.Order
	}
	for _, c := range []struct {
		a, b string
		cmp  int // as when the shorter is padded with zeros at the right
	}{
		{"12", "13", -1}, {"12", "120", 0}, {"12", "1201", -1}, {"121", "12", 1}, {"13", "1299", 1}, {"0", "000", 0}, {"00", "01", -1}, {"9", "A", -1}, {"0055AED6DCD90281E5", "0055AED6DCD90281E6", -1},
	} {
		if got := strings.Compare(order(c.a), order(c.b)); got != c.cmp {
			t.Errorf("%s against %s: %d, want %d", c.a, c.b, got, c.cmp)
		}
	}
}

func TestS3TestEvent(t *testing.T) { // F26
	t.Parallel()
	e := load[events.S3Event](t, "s3-test.json")
	for name, f := range map[string]keyfuncs.Func[events.S3Event]{"S3Object": keyfuncs.S3Object, "S3Latest": keyfuncs.S3Latest} {
		if _, err := f(t.Context(), e); !errors.Is(err, keyfuncs.ErrIgnore) {
			t.Errorf("%s: %v, want ErrIgnore", name, err)
		}
	}
}

func TestSQS(t *testing.T) {
	t.Parallel()
	e := load[events.SQSEvent](t, "sqs.json")
	want := lock.Key{Name: "sqs/059f36b4-87a3-44ab-83d2-661975830a7d", Event: "059f36b4-87a3-44ab-83d2-661975830a7d"}
	if got, err := keyfuncs.SQSMessage(t.Context(), e); got != want || err != nil {
		t.Errorf("SQSMessage: %+v, %v", got, err)
	}
	if got, err := keyfuncs.SQSRecord(t.Context(), e.Records[0]); got != want || err != nil {
		t.Errorf("SQSRecord: %+v, %v", got, err)
	}
}

func TestKeyErrorsNameTheField(t *testing.T) { // F26, F31
	t.Parallel()
	s3 := func(change func(*events.S3EventRecord)) error {
		e := load[events.S3Event](t, "s3-put.json")
		change(&e.Records[0])
		_, err := keyfuncs.S3Object(t.Context(), e)
		return err
	}
	latest := load[events.S3Event](t, "s3-put.json")
	latest.Records[0].S3.Object.Sequencer = ""
	_, noOrder := keyfuncs.S3Latest(t.Context(), latest)
	_, noMessage := keyfuncs.SQSMessage(t.Context(), events.SQSEvent{})
	_, noID := keyfuncs.SQSMessage(t.Context(), events.SQSEvent{Records: make([]events.SQSMessage, 1)})
	_, manyS3 := keyfuncs.S3Object(t.Context(), events.S3Event{Records: make([]events.S3EventRecord, 3)})
	_, manySQS := keyfuncs.SQSMessage(t.Context(), events.SQSEvent{Records: make([]events.SQSMessage, 2)})
	for name, c := range map[string]struct {
		err    error
		field  string
		within string
	}{
		"no bucket":        {s3(func(r *events.S3EventRecord) { r.S3.Bucket.Name = "" }), "Records[0].s3.bucket.name", "missing"},
		"no object key":    {s3(func(r *events.S3EventRecord) { r.S3.Object.Key, r.S3.Object.URLDecodedKey = "", "" }), "Records[0].s3.object.key", "missing"},
		"malformed escape": {s3(func(r *events.S3EventRecord) { r.S3.Object.Key, r.S3.Object.URLDecodedKey = "a%zz", "" }), "Records[0].s3.object.key", "URL-encoded"},
		"no identity": {s3(func(r *events.S3EventRecord) {
			r.S3.Object.Sequencer, r.S3.Object.VersionID, r.ResponseElements = "", "", nil
		}), "Records[0].s3.object.sequencer", "versionId"},
		"no order":           {noOrder, "Records[0].s3.object.sequencer", "S3Object"},
		"no message":         {noMessage, "Records", "empty"},
		"no message id":      {noID, "Records[0].messageId", "missing"},
		"several S3 records": {manyS3, "Records", "middleware.EachS3Record"},
		"several messages":   {manySQS, "Records", "middleware.EachSQSMessage"},
	} {
		e, ok := c.err.(*lock.KeyError)
		if !ok || e.Field != c.field || !strings.Contains(e.Error(), c.within) {
			t.Errorf("%s: %v, want a KeyError of %s that says %q", name, c.err, c.field, c.within)
		}
	}
}

func TestStatic(t *testing.T) {
	t.Parallel()
	if got, err := keyfuncs.Static("job")(t.Context(), 42); got != (lock.Key{Name: "job"}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
