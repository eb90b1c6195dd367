package keyfuncs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// TestEveryEventInEveryEnvelope: whatever comes through a queue or topic, a function
// gives keys to its own kind only and ignores nothing but the s3:TestEvent.
func TestEveryEventInEveryEnvelope(t *testing.T) {
	t.Parallel()
	// inTopicAndQueue puts the event into a message of a topic, and that into a queue.
	inTopicAndQueue := func(f keyfuncs.Func[events.SQSMessage]) keyfuncs.Func[string] {
		return func(ctx context.Context, text string) (lock.Key, error) {
			return inSQS(f)(ctx, marshal(t, events.SNSEntity{Type: "Notification", MessageID: "m", TopicArn: "arn:aws:sns:us-east-2:123456789012:t", Message: text}))
		}
	}
	for name, f := range map[string]struct {
		kind eventkind.Kind
		key  keyfuncs.Func[string]
	}{
		"S3ViaSQS":                  {eventkind.S3, inSQS(keyfuncs.S3ViaSQSRecord)},
		"S3Latest in a body":        {eventkind.S3, inSQS(keyfuncs.SQSBody(keyfuncs.S3Latest))},
		"S3ViaSNS":                  {eventkind.S3, inSNS(keyfuncs.S3ViaSNSRecord)},
		"S3ViaSNSAndSQS":            {eventkind.S3, inTopicAndQueue(keyfuncs.S3ViaSNSAndSQSRecord)},
		"S3ViaSNSAndSQS, no topic":  {"none", inSQS(keyfuncs.S3ViaSNSAndSQSRecord)},
		"S3ViaSQS, through a topic": {"none", inTopicAndQueue(keyfuncs.S3ViaSQSRecord)},
		"EventBridgeViaSQS":         {eventkind.EventBridge, inSQS(keyfuncs.EventBridgeViaSQSRecord)},
		"EventBridge of S3":         {eventkind.EventBridge, inSQS(keyfuncs.SQSBody(keyfuncs.S3ViaEventBridge))},
		"CloudWatchAlarmViaSNS":     {eventkind.AlarmMessage, inSNS(keyfuncs.CloudWatchAlarmViaSNSRecord)},
		"CloudFormation by a topic": {eventkind.CloudFormation, inSNS(keyfuncs.SNSBody(keyfuncs.CloudFormation))},
	} {
		for file, doc := range everyEvent(t) {
			if strings.Contains(file, " payload-") { // no event of AWS
				continue
			}
			kind := eventkind.Of(doc)
			k, err := f.key(t.Context(), string(doc))
			var refused *lock.KeyError
			switch {
			case err == nil && (kind != f.kind || k.Name == "" || k.Event == ""):
				t.Errorf("%s gives %s the key %+v", name, file, k)
			case errors.Is(err, keyfuncs.ErrIgnore) && (kind != eventkind.S3Test || f.kind != eventkind.S3):
				t.Errorf("%s ignores %s: %v", name, file, err)
			case err != nil && !errors.Is(err, keyfuncs.ErrIgnore) && !errors.As(err, &refused):
				t.Errorf("%s on %s: error of type %T", name, file, err)
			case refused != nil && kind != f.kind && kind != "" && f.kind != "none" && !strings.Contains(fmt.Sprint(err), string(kind)):
				t.Errorf("%s on %s: %v, which does not say that it is %s", name, file, err, kind)
			}
		}
	}
}
