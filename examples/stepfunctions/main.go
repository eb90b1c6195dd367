// stepfunctions holds the lock of a customer through a workflow: one invocation
// acquires it, others work under it, and the last one completes the order.
// Executions for the same customer find the lock held and try again; a second
// execution for the same order finds it completed.
//
// Event source: the state machine in statemachine.asl.json, which names the
// step and carries the ticket in its state. A step that fails keeps the lock
// for its retries. Charge and ship may run twice, because only the completion
// of the order is remembered.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// untilNextStep is how long the next step may take to begin, with its retries.
const untilNextStep = 3 * time.Minute

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	steps := map[string]func(context.Context, order) (any, error){
		// A skipped duplicate would have no ticket to go on with, so it fails, and the
		// state machine catches CompletedError.
		"acquire": middleware.WithLock(byCustomer, acquire, middleware.OnCompleted(middleware.Fail)),
		"charge":  middleware.Resume(ticketOf, charge),
		"ship":    middleware.Resume(ticketOf, ship),
		"release": release,
	}
	lambda.Start(func(ctx context.Context, o order) (any, error) {
		step, ok := steps[o.Step]
		if !ok {
			return nil, fmt.Errorf("there is no step %q", o.Step)
		}
		return step(ctx, o)
	})
}

type order struct {
	Step     string      `json:"step"`
	ID       string      `json:"order"`
	Customer string      `json:"customer"`
	Amount   int         `json:"amount"` // in cents
	Lock     lock.Ticket `json:"lock"`
}

func byCustomer(_ context.Context, o order) (lock.Key, error) {
	if o.Customer == "" || o.ID == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "customer or order", Reason: "is missing"}
	}
	return lock.Key{Name: "customer/" + o.Customer, Event: o.ID}, nil
}

func ticketOf(o order) lock.Ticket { return o.Lock }

// acquire returns the handle, which the state machine puts into its state.
func acquire(ctx context.Context, _ order) (any, error) {
	return lock.HandOver(ctx, untilNextStep)
}

// charge is where your own work goes. It hands the lock over again.
func charge(ctx context.Context, o order) (any, error) {
	if o.Amount <= 0 {
		return nil, errors.New("nothing to charge")
	}
	slog.InfoContext(ctx, "customer charged", "order", o.ID)
	return lock.HandOver(ctx, untilNextStep)
}

// ship is the last step: it completes the order and releases the lock.
func ship(ctx context.Context, o order) (any, error) {
	slog.InfoContext(ctx, "order shipped", "order", o.ID)
	return nil, nil
}

// release ends the lock of an order that failed, so that the customer's next
// order need not wait for the end of the lease.
func release(ctx context.Context, o order) (any, error) {
	locker, err := lock.New(middleware.DefaultStore(""), nil)
	if err != nil {
		return nil, err
	}
	l, err := locker.Resume(ctx, o.Lock)
	if err != nil {
		return nil, err
	}
	return nil, l.Release()
}
