package services

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// ConfigRule handles each event of an AWS Config rule once, one resource of a
// rule at a time. Name is the rule's ARN with type and id of the resource, or
// with the message type of an event without one, such as a
// ScheduledNotification. Event is a digest of the invoking event and the result
// token. No Order.
func ConfigRule(_ context.Context, e events.ConfigEvent) (lock.Key, error) {
	// The result token identifies the event that triggered an evaluation:
	// https://docs.aws.amazon.com/config/latest/APIReference/API_PutEvaluations.html
	// https://docs.aws.amazon.com/config/latest/developerguide/evaluate-config_develop-rules_example-events.html
	if err := keyparts.Required("configRuleArn", e.ConfigRuleArn, "invokingEvent", e.InvokingEvent, "resultToken", e.ResultToken); err != nil {
		return lock.Key{}, err
	}
	type resource struct {
		Type string `json:"resourceType"`
		ID   string `json:"resourceId"`
	}
	var cause struct {
		MessageType string    `json:"messageType"`
		Item        *resource `json:"configurationItem"`
		Summary     *resource `json:"configurationItemSummary"` // of an item that is too large
	}
	if err := json.Unmarshal([]byte(e.InvokingEvent), &cause); err != nil {
		return lock.Key{}, &lock.NoKeyError{Field: "invokingEvent", Reason: "is not the JSON of AWS Config", Err: err}
	}
	subject := cause.Item
	if subject == nil {
		subject = cause.Summary
	}
	parts := []string{e.ConfigRuleArn, cause.MessageType}
	switch {
	case subject != nil && (subject.Type == "" || subject.ID == ""):
		return lock.Key{}, keyparts.Missing("invokingEvent.configurationItem.resourceId")
	case subject != nil:
		parts = []string{e.ConfigRuleArn, subject.Type, subject.ID}
	case cause.MessageType == "":
		return lock.Key{}, keyparts.Missing("invokingEvent.messageType")
	}
	return lock.Key{Name: keyparts.Name("config", parts...), Event: keyparts.Digest(keyparts.Name("", e.ResultToken, e.InvokingEvent))}, nil
}
