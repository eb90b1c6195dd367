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
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

// TestEveryEventInEveryEnvelope: whatever comes through a queue or topic, a
// function gives keys to its own kind only and ignores nothing but the
// s3:TestEvent.
func TestEveryEventInEveryEnvelope(t *testing.T) {
	t.Parallel()
	// inTopicAndQueue puts the event into a message of a topic, and that into a
	// queue.
	inTopicAndQueue := func(key keyfuncs.Func[events.SQSMessage]) keyfuncs.Func[string] {
		return func(ctx context.Context, text string) (lock.Key, error) {
			return inQueue(key)(ctx, published(t, text))
		}
	}
	docs, none := everyEvent(t), new(eventkind.Kind)
	for name, f := range map[string]struct {
		kind *eventkind.Kind
		key  keyfuncs.Func[string]
	}{
		"S3 in a queue":             {eventkind.S3, inQueue(s3InQueue)},
		"the latest in a queue":     {eventkind.S3, inQueue(keyfuncs.SQSBody(s3Latest))},
		"S3 in a topic":             {eventkind.S3, inTopic(s3InTopic)},
		"S3 in both":                {eventkind.S3, inTopicAndQueue(s3InBoth)},
		"S3 in both, no topic":      {none, inQueue(s3InBoth)},
		"S3 in a queue, by a topic": {none, inTopicAndQueue(s3InQueue)},
		"EventBridge in a queue":    {eventkind.EventBridge, inQueue(keyfuncs.SQSBody(keyfuncs.EventBridgeEvent))},
		"EventBridge of S3":         {eventkind.EventBridge, inQueue(keyfuncs.SQSBody(keyfuncs.EventBridgeS3Object))},
		"EventBridge in a stream":   {eventkind.EventBridge, inStream(keyfuncs.KinesisBody(keyfuncs.EventBridgeEvent))},
		"SNSAlarmRecord":            {eventkind.AlarmMessage, inTopic(services.SNSAlarmRecord)},
		"InvocationRecord":          {eventkind.InvocationRecord, inQueue(keyfuncs.SQSBody(services.InvocationRecord))},
		"CloudFormation in a topic": {eventkind.CloudFormation, inTopic(keyfuncs.SNSBody(services.CloudFormation))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for file, doc := range docs {
				kind := eventkind.Of(doc)
				k, err := f.key(t.Context(), string(doc))
				var refused *lock.NoKeyError
				switch {
				case err == nil && (kind != f.kind || k.Name == "" || k.Event == ""):
					t.Errorf("%s has the key %+v", file, k)
				case errors.Is(err, keyfuncs.ErrIgnore) && (kind != eventkind.S3Test || f.kind != eventkind.S3):
					t.Errorf("%s is ignored: %v", file, err)
				case err != nil && !errors.Is(err, keyfuncs.ErrIgnore) && !errors.As(err, &refused):
					t.Errorf("%s: error of type %T", file, err)
				case refused != nil && kind != f.kind && kind != nil && f.kind != none && !strings.Contains(fmt.Sprint(err), kind.String()):
					t.Errorf("%s: %v, which does not say that it is %s", file, err, kind)
				}
			}
		})
	}
}
