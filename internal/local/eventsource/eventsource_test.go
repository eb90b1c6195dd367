package eventsource

import (
	"strings"
	"testing"
)

func TestFailed(t *testing.T) {
	t.Parallel()
	const names3, names32 = `{"batchItemFailures":[{"itemIdentifier":"3"}]}`, `{"batchItemFailures":[{"itemIdentifier":"3"},{"itemIdentifier":"2"}]}`
	for _, c := range []struct{ source, answer, want string }{
		{SQS, ``, ""},
		{SQS, `null`, ""},
		{SQS, `{}`, ""},
		{SQS, `{"batchItemFailures":null}`, ""},
		{SQS, `{"batchItemFailures":[]}`, ""},
		{SQS, `"text"`, ""},
		{SQS, `no JSON`, "1 2 3 4"},
		{SQS, `{"batchItemFailures":{}}`, "1 2 3 4"},
		{SQS, `{"batchItemFailures":[{}]}`, "1 2 3 4"},
		{SQS, `{"batchItemFailures":[{"id":"1"}]}`, "1 2 3 4"},
		{SQS, `{"batchItemFailures":[{"itemIdentifier":null}]}`, "1 2 3 4"},
		{SQS, `{"batchItemFailures":[{"itemIdentifier":""}]}`, "1 2 3 4"},
		{SQS, `{"batchItemFailures":[{"itemIdentifier":"5"}]}`, "1 2 3 4"},
		{SQS, `{"batchItemFailures":[{"ItemIdentifier":"3"}]}`, "1 2 3 4"},
		{SQS, `{"batchItemFailures":[{"itemIdentifier":3}]}`, "1 2 3 4"},
		{SQS, `{"batchItemFailures":[null]}`, "1 2 3 4"},
		{SQS, `{"BatchItemFailures":[{"itemIdentifier":"3"}]}`, ""},
		{SQS, names3, "3"},
		{SQS, names32, "2 3"},
		{Kinesis, `{}`, ""},
		{Kinesis, names3, "3 4"},
		{Kinesis, names32, "2 3 4"},
		{DynamoDB, names3, "3 4"},
	} {
		t.Run(c.source+" "+c.answer, func(t *testing.T) {
			t.Parallel()
			failed := Failed(c.source, strings.Fields("1 2 3 4"), func(id string) string { return id }, []byte(c.answer))
			if got := strings.Join(failed, " "); got != c.want {
				t.Errorf("failed %q, want %q", got, c.want)
			}
		})
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Record{
		`{"eventSource":"aws:sqs","messageId":"a","attributes":{"MessageGroupId":"g"}}`:                  {SQS, "a", "g"},
		`{"eventSource":"aws:kinesis","eventID":"shardId-1:23","kinesis":{"sequenceNumber":"23"}}`:       {Kinesis, "23", "shardId-1"},
		`{"eventSource":"aws:dynamodb","eventID":"c4ca4238","dynamodb":{"SequenceNumber":"4421584500"}}`: {DynamoDB, "4421584500", ""},
		`{"eventSource":"aws:s3","messageId":"a"}`:                                                       {"aws:s3", "", ""},
		`7`: {},
	} {
		if got := Identify([]byte(text)); got != want {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
}
