package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

type receipt struct {
	Order    json.Number `json:"order"`
	Customer string      `json:"customer"`
}

// newHandler takes options so that tests can replace the store.
func newHandler(send func(context.Context, receipt) error, opts ...middleware.Option) func(context.Context, events.EventBridgeEvent) error {
	return middleware.WithEventBridgeDetail(middleware.RecordKey[receipt](keyfuncs.EventBridgeEvent), func(ctx context.Context, r receipt) error {
		if r.Order == "" || r.Customer == "" {
			return errors.New("the event names no order or no customer")
		}
		return send(ctx, r)
	}, opts...)
}
