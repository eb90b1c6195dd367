package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestEachS3RecordOfAnotherSource: only the s3:TestEvent is acknowledged unseen.
// What belongs to another wrapper fails and says so.
func TestEachS3RecordOfAnotherSource(t *testing.T) { // F26
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		for name, c := range map[string]struct{ event, says string }{
			"SQS":         {testdata(t, "sqs-s3.json"), "EachSQSMessage"},
			"SNS":         {testdata(t, "sns-s3.json"), "EachSNSRecord"},
			"EventBridge": {testdata(t, "eventbridge-s3.json"), "EventBridgeS3Object"},
			"Kafka":       {testdata(t, "kafka.json"), "EachKafkaRecord"},
			"HTTP":        {testdata(t, "apigateway-http.json"), "gateway"},
			"any JSON":    {`{"order":17}`, "no S3 notification"},
			"no records":  {`{"Records":[]}`, "no S3 notification"},
		} {
			q, tr := newQuiet(), &trace{}
			h := middleware.EachS3Record(
				func(context.Context, events.S3EventRecord) (lock.Key, error) { return lock.Key{Name: "n"}, nil }, // looks at nothing
				func(ctx context.Context, r events.S3EventRecord) error { return tr.act(ctx, "", "") }, q.with()...)
			var e middleware.S3Event
			err := json.Unmarshal([]byte(c.event), &e)
			if err == nil {
				err = h(ctx, e)
			}
			if !errors.As(err, new(*lock.KeyError)) || !strings.Contains(err.Error(), c.says) || len(tr.began) != 0 {
				t.Errorf("%s: %v after %d runs, want a KeyError that says %q", name, err, len(tr.began), c.says)
			}
			q.want(t, lock.OutcomeRefused)
		}
	})
}

// TestRawHandlerOfAnotherSource: a handler of bytes has the JSON at hand, so that
// here too only the s3:TestEvent is acknowledged unseen.
func TestRawHandlerOfAnotherSource(t *testing.T) { // F26
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		for name, c := range map[string]struct{ event, says string }{
			"the test event": {testdata(t, "s3-test.json"), ""},
			"EventBridge":    {testdata(t, "eventbridge-s3.json"), "EventBridgeS3Object"},
			"SQS":            {testdata(t, "sqs-s3.json"), "SQSBody(S3Object)"},
			"any JSON":       {`{"order":17}`, "no S3 notification"},
		} {
			q, h := newQuiet(), &untouched{t}
			_, err := middleware.WithLock[events.S3Event, lambda.Handler](keyfuncs.S3Object, h, q.with()...).Invoke(ctx, []byte(c.event))
			if c.says == "" {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				q.want(t, middleware.OutcomeIgnored)
				continue
			}
			if !errors.As(err, new(*lock.KeyError)) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want a KeyError that says %q", name, err, c.says)
			}
			q.want(t, lock.OutcomeRefused)
		}
	})
}

// untouched is a handler that must not run.
type untouched struct{ t *testing.T }

func (u *untouched) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	u.t.Errorf("the handler ran with %.80s", payload)
	return nil, nil
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../keyfuncs/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNewsOfAnUpload: what S3 reports of an object after its upload is handled, each
// once, and does not disturb the order of uploads.
func TestNewsOfAnUpload(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, ran := newQuiet(), []string{}
		h := middleware.WithLock(keyfuncs.Single[events.S3Event](keyfuncs.S3LatestRecord), func(_ context.Context, e events.S3Event) error {
			ran = append(ran, e.Records[0].EventName+" "+e.Records[0].S3.Object.Sequencer)
			return nil
		}, q.with()...)
		deliver := func(kind, sequencer string) {
			r := s3Record("k")
			r.EventName, r.S3.Object.Sequencer, r.ResponseElements = kind, sequencer, map[string]string{"x-amz-request-id": kind + sequencer}
			if err := h(ctx, events.S3Event{Records: []events.S3EventRecord{r}}); err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			deliver("ObjectCreated:Put", "02")
			deliver("Replication:OperationMissedThreshold", "02")
			deliver("Replication:OperationReplicatedAfterThreshold", "02")
			deliver("ObjectCreated:Put", "01")
			deliver("ObjectRestore:Post", "02")
			deliver("ObjectRestore:Completed", "02")
		}
		deliver("ObjectRemoved:DeleteMarkerCreated", "03")
		want := []string{
			"ObjectCreated:Put 02", "Replication:OperationMissedThreshold 02", "Replication:OperationReplicatedAfterThreshold 02",
			"ObjectRestore:Post 02", "ObjectRestore:Completed 02", "ObjectRemoved:DeleteMarkerCreated 03",
		}
		if !slices.Equal(ran, want) {
			t.Errorf("handled %q, want %q", ran, want)
		}
	})
}
