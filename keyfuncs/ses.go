package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// SESRecord handles each email of an SES receipt rule once, in a function that
// is an action of the rule. SES sends one record per event. Event is the
// message id that SES gave to the email. Name is that id and a digest of the
// recipients: two rules that match one email for different recipients may
// invoke the same function, and each has its own list. Rules that match the
// same recipients look alike, so two of them on one function count as one. No
// Order.
//
// A rule that waits for the function (invocation type RequestResponse) needs
// its answer every time: use middleware.OnCompleted(middleware.Replay). Emails
// that come through a topic or a bucket are messages of SNS and notifications
// of S3: [SNSRecord], [S3Object].
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/services-ses.html,
// https://docs.aws.amazon.com/ses/latest/dg/receiving-email-action-lambda-event.html,
// https://docs.aws.amazon.com/ses/latest/dg/receiving-email-notifications-contents.html.
func SESRecord(_ context.Context, r events.SimpleEmailRecord) (lock.Key, error) {
	if err := foreignRecord(r); err != nil {
		return lock.Key{}, err
	}
	id := r.SES.Mail.MessageID
	if id == "" {
		return lock.Key{}, keyparts.Missing("ses.mail.messageId")
	}
	return lock.Key{Name: keyparts.Name("ses", id, keyparts.Digest(keyparts.Name("", r.SES.Receipt.Recipients...))), Event: id}, nil
}
