package keyfuncs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var codeCommitRecord = keyfuncs.Single[events.CodeCommitEvent](keyfuncs.CodeCommitRecord)

func TestCodeCommitRecord(t *testing.T) {
	t.Parallel()
	gives(t, "codecommit.json", codeCommitRecord, lock.Key{
		Name:  "codecommit/arn:aws:codecommit:us-east-2:123456789012:lambda-pipeline-repo/31ade2c7-f889-47c5-a937-1cf99e2790e9%2F1%2F1552424305400",
		Event: "31ade2c7-f889-47c5-a937-1cf99e2790e9/1/1552424305400",
	})
	first := func(change func(*events.CodeCommitRecord)) func(*events.CodeCommitEvent) {
		return func(e *events.CodeCommitEvent) { change(&e.Records[0]) }
	}
	apart(t, "codecommit.json", codeCommitRecord, map[string]func(*events.CodeCommitEvent){
		"another event":      first(func(r *events.CodeCommitRecord) { r.EventID += "2" }),
		"another part":       first(func(r *events.CodeCommitRecord) { r.EventPartNumber++ }),
		"another repository": first(func(r *events.CodeCommitRecord) { r.EventSourceARN += "2" }),
		"another test": first(func(r *events.CodeCommitRecord) {
			r.EventTime = events.CodeCommitEventTime(time.Time(r.EventTime).Add(time.Second))
		}),
	})
	refuses(t, "codecommit.json", codeCommitRecord, map[string]func(*events.CodeCommitEvent){
		"Records[0].eventId":        first(func(r *events.CodeCommitRecord) { r.EventID = "" }),
		"Records[0].eventSourceARN": first(func(r *events.CodeCommitRecord) { r.EventSourceARN = "" }),
	})
}
