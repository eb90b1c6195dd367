package keyfuncs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var snsRecord = keyfuncs.Single[events.SNSEvent](keyfuncs.SNSRecord)

func TestSNSRecord(t *testing.T) {
	t.Parallel()
	id := "95df01b4-ee98-5cb9-9903-4c221d41eb5e"
	gives(t, "sns.json", snsRecord, lock.Key{Name: "sns/" + id, Event: id})
	refuses(t, "sns.json", snsRecord, map[string]func(*events.SNSEvent){
		"Records[0].Sns.MessageId": func(e *events.SNSEvent) { e.Records[0].SNS.MessageID = "" },
	})
	_, err := changed(t, "sns.json", snsRecord, func(e *events.SNSEvent) { e.Records[0].SNS.MessageID = "" })
	if text := fmt.Sprint(err); !strings.HasSuffix(text, " is missing") {
		t.Errorf("%s, which says more than it knows", text)
	}
}

// TestSNSInAQueue: a topic puts the message into a queue without the record
// around it, so errors name the field in the body.
func TestSNSInAQueue(t *testing.T) {
	t.Parallel()
	body := published(t, `{"customer":"jane"}`)
	for name, c := range map[string]struct {
		key  keyfuncs.Func[events.SNSEventRecord]
		want lock.Key
	}{
		"SNSRecord": {keyfuncs.SNSRecord, lock.Key{Name: "sns/m", Event: "m"}},
		"SNSBody":   {keyfuncs.SNSBody(byCustomer), lock.Key{Name: "jane", Event: "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := events.SQSMessage{MessageId: "sqs", Body: body}
			if k, err := keyfuncs.SQSBody(c.key)(t.Context(), message); k != c.want || err != nil {
				t.Errorf("%+v, %v; want %+v", k, err, c.want)
			}
		})
	}
	if k, err := inQueue(keyfuncs.SQSBody(keyfuncs.SNSRecord))(t.Context(), published(t, "")); k != (lock.Key{Name: "sns/m", Event: "m"}) || err != nil {
		t.Errorf("an empty message: %+v, %v", k, err)
	}
	nothing := func(context.Context, shopOrder) (lock.Key, error) {
		return lock.Key{}, &lock.NoKeyError{Field: "customer", Reason: "is missing"}
	}
	for name, c := range map[string]struct {
		key         keyfuncs.Func[events.SNSEventRecord]
		body, field string
	}{
		"no id":          {keyfuncs.SNSRecord, `{"Type":"Notification","Message":"{}"}`, "body.MessageId"},
		"no customer":    {keyfuncs.SNSBody(nothing), body, "body.Message.customer"},
		"no JSON inside": {keyfuncs.SNSBody(byCustomer), `{"Type":"Notification","Message":"{"}`, "body.Message"},
		"no JSON":        {keyfuncs.SNSBody(byCustomer), `{`, "body"},
	} {
		_, err := inQueue(keyfuncs.SQSBody(c.key))(t.Context(), c.body)
		refused(t, name, err, c.field, "")
	}
}
