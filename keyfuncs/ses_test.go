package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var sesRecord = keyfuncs.Single[events.SimpleEmailEvent](keyfuncs.SESRecord)

func TestSESRecord(t *testing.T) {
	t.Parallel()
	id := "6n4thuhcbhpfiuf25gshf70rss364fuejrvmqko1"
	gives(t, "ses.json", sesRecord, lock.Key{Name: "ses/" + id + "/Bu8LBypUSRUIw6TmElNskmNtAInA5EuXFB9BTzLukZg", Event: id})
	apart(t, "ses.json", sesRecord, map[string]func(*events.SimpleEmailEvent){
		"another email": func(e *events.SimpleEmailEvent) { e.Records[0].SES.Mail.MessageID += "2" },
		"another rule":  func(e *events.SimpleEmailEvent) { e.Records[0].SES.Receipt.Recipients = []string{"a@example.com"} },
		"a rule with both": func(e *events.SimpleEmailEvent) {
			e.Records[0].SES.Receipt.Recipients = []string{"a@example.com", "lambda@amazon.com"}
		},
		"a rule without any": func(e *events.SimpleEmailEvent) { e.Records[0].SES.Receipt.Recipients = nil },
	})
	refuses(t, "ses.json", sesRecord, map[string]func(*events.SimpleEmailEvent){
		"Records[0].ses.mail.messageId": func(e *events.SimpleEmailEvent) { e.Records[0].SES.Mail.MessageID = "" },
		"Records":                       func(e *events.SimpleEmailEvent) { e.Records = append(e.Records, e.Records[0]) },
	})
	refuses(t, "sqs.json", sesRecord, map[string]func(*events.SimpleEmailEvent){"Records[0].eventSource": nil})
}
