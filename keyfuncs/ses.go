package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// SESRecord handles each email of an SES receipt rule once, in a function that
// is an action of the rule. Event is the message id, Name that id and a digest
// of the recipients. Two rules on one function that match the same recipients
// count as one. A rule of type RequestResponse needs the answer every time: use
// middleware.OnCompleted(middleware.Replay). No Order.
func SESRecord(_ context.Context, r events.SimpleEmailRecord) (lock.Key, error) {
	// https://docs.aws.amazon.com/ses/latest/dg/receiving-email-action-lambda-event.html
	// https://docs.aws.amazon.com/ses/latest/dg/receiving-email-notifications-contents.html
	if err := keyparts.ForeignRecord(r); err != nil {
		return lock.Key{}, err
	}
	id := r.SES.Mail.MessageID
	if id == "" {
		return lock.Key{}, keyparts.Missing("ses.mail.messageId")
	}
	return lock.Key{Name: keyparts.Name("ses", id, keyparts.Digest(keyparts.Name("", r.SES.Receipt.Recipients...))), Event: id}, nil
}
