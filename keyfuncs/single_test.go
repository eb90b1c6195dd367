package keyfuncs_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// TestSingle: an event that does not hold exactly one record has no key, and
// the error says what to use instead.
func TestSingle(t *testing.T) { // F26
	t.Parallel()
	type record struct{ ID string }
	type own struct {
		Records []record `json:"Records"`
	}
	byID := keyfuncs.Single[own](keyfuncs.ByField(func(r record) string { return r.ID }))
	if k, err := byID(t.Context(), own{Records: []record{{"7"}}}); k != (lock.Key{Name: "7"}) || err != nil {
		t.Errorf("a type of the user's own: %+v, %v", k, err)
	}
	holds := func(records string) string { return `{"Records":` + records + `}` }
	for name, c := range map[string]struct {
		key  keyfuncs.Func[string]
		says string
	}{
		"SQS":        {decoding(keyfuncs.Single[events.SQSEvent](keyfuncs.SQSMessage)), "middleware.EachSQSMessage, or set the batch size to 1"},
		"SNS":        {decoding(keyfuncs.Single[events.SNSEvent](keyfuncs.SNSRecord)), "middleware.EachSNSRecord"},
		"S3":         {decoding(keyfuncs.S3Object), "middleware.EachS3Record"},
		"Kinesis":    {decoding(keyfuncs.Single[events.KinesisEvent](keyfuncs.KinesisRecord)), "middleware.EachKinesisRecord"},
		"DynamoDB":   {decoding(keyfuncs.Single[events.DynamoDBEvent](keyfuncs.DynamoDBRecord)), "middleware.EachDynamoDBRecord"},
		"SES":        {decoding(keyfuncs.Single[events.SimpleEmailEvent](keyfuncs.SESRecord)), "its source sends one"},
		"CodeCommit": {decoding(keyfuncs.Single[events.CodeCommitEvent](keyfuncs.CodeCommitRecord)), "its source sends one"},
		"own type":   {decoding(byID), "one by one"},
	} {
		_, err := c.key(t.Context(), holds(`[{},{}]`))
		refused(t, name+", two records", err, "Records", "holds 2 records, and one lock cannot stand for them all: ")
		refused(t, name+", what to do", err, "Records", c.says)
		if name == "S3" { // see TestS3TestEvent
			continue
		}
		for _, none := range []string{holds(`[]`), holds(`null`), `{}`, `{"events":[{}]}`} {
			_, err := c.key(t.Context(), none)
			refused(t, name+", "+none, err, "Records", "is empty or missing: this is an event of another source")
		}
	}
}

// TestSingleLocatesErrors: the error of a key function says in which record.
func TestSingleLocatesErrors(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, events.SQSMessage) (lock.Key, error) {
		return lock.Key{}, &lock.NoKeyError{Field: "order", Reason: "is missing"}
	}
	_, err := keyfuncs.Single[events.SQSEvent](fails)(t.Context(), load[events.SQSEvent](t, "sqs.json"))
	refused(t, "order", err, "Records[0].order", "is missing")
}
