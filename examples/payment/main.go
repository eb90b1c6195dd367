// payment pays each invoice exactly once, at a bank that does not recognise a
// repeated request. If the function dies while it pays, or the bank's answer is
// lost, the next delivery asks the bank for a payment with the invoice's id
// before it pays.
//
// Event source: an SQS standard queue with ReportBatchItemFailures on the event
// source mapping, a visibility timeout of six times the function's timeout, and
// a dead-letter queue with a maxReceiveCount of at least 5. The function needs
// no permissions beside those for the lock table, and BANK_URL in its
// environment.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	b := bank{url: os.Getenv("BANK_URL")}
	if b.url == "" {
		log.Fatal("payment: set BANK_URL in the function's environment")
	}
	lambda.Start(middleware.EachSQSBody(byInvoice, b.pay, middleware.OnInterrupted(middleware.Ask(b.paid))))
}

type invoice struct {
	ID     string `json:"invoice"`
	Amount int64  `json:"amount"` // in cents
}

func byInvoice(_ context.Context, i invoice) (lock.Key, error) {
	if i.ID == "" || i.Amount < 1 {
		return lock.Key{}, &lock.NoKeyError{Field: "invoice or amount", Reason: "is missing"}
	}
	return lock.Key{Name: "invoice/" + i.ID, Event: i.ID}, nil
}

type bank struct{ url string }

// pay says that it does not know if there is no answer, or one that does not
// say what became of the payment. A refusal is an error like any other.
func (b bank) pay(ctx context.Context, i invoice) error {
	body, err := json.Marshal(map[string]any{"id": i.ID, "amount": i.Amount})
	if err != nil {
		return err
	}
	status, err := b.send(ctx, http.MethodPost, "/payments", body)
	switch {
	case err != nil:
		return middleware.Unknown(fmt.Errorf("pay invoice %s: %w", i.ID, err))
	case status >= http.StatusInternalServerError:
		return middleware.Unknown(fmt.Errorf("pay invoice %s: status %d", i.ID, status))
	case status >= http.StatusMultipleChoices:
		return fmt.Errorf("pay invoice %s: the bank refuses it with status %d", i.ID, status)
	}
	slog.InfoContext(ctx, "invoice paid", "invoice", i.ID, "amount", i.Amount)
	return nil
}

// paid reports whether there is a payment with the invoice's id. A bank that
// shows a payment only some time after it took it must be asked later: return
// an error until that time is over.
func (b bank) paid(ctx context.Context, i invoice) (bool, error) {
	status, err := b.send(ctx, http.MethodGet, "/payments/"+url.PathEscape(i.ID), nil)
	switch {
	case err != nil:
		return false, fmt.Errorf("ask for invoice %s: %w", i.ID, err)
	case status == http.StatusOK:
		return true, nil
	case status == http.StatusNotFound:
		return false, nil
	}
	return false, fmt.Errorf("ask for invoice %s: status %d", i.ID, status)
}

func (b bank) send(ctx context.Context, method, path string, body []byte) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, method, b.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
