// stripe charges the customer of each order once, at a service that recognises
// a repeated request by an idempotency key, such as Stripe. The id of a charge
// is made from the order, so it is the same in every try: also in the one that
// follows when the function died after the charge and before its event was
// completed.
//
// Event source: an SQS standard queue with ReportBatchItemFailures on the event
// source mapping, a visibility timeout of six times the function's timeout, and
// a dead-letter queue with a maxReceiveCount of at least 5. The function needs
// no permissions beside those for the lock table, and STRIPE_URL in its
// environment.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	s := service{url: os.Getenv("STRIPE_URL")}
	if s.url == "" {
		log.Fatal("stripe: set STRIPE_URL in the function's environment")
	}
	byOrder := keyfuncs.Once(keyfuncs.ByField(func(o order) string { return o.ID }))
	lambda.Start(middleware.EachSQSBody(byOrder, s.charge))
}

// order is all that a charge is made from. A second request with the same id
// must be the same, so nothing of the delivery belongs into it.
type order struct {
	ID       string `json:"order"`
	Amount   int64  `json:"amount"` // in cents
	Customer string `json:"customer"`
	Method   string `json:"payment_method"` // saved for payments without the customer
}

type service struct{ url string }

// charge is done with a payment that has succeeded, or that is processing, as a
// debit is for days: a webhook tells its end. A further try would not: for 24
// hours the same id gets the same answer, and after that it may pay twice. What
// else becomes of a payment does not change either, so somebody has to look.
func (s service) charge(ctx context.Context, o order) error {
	id, err := idFor(ctx, "charge")
	if err != nil {
		return err
	}
	form := url.Values{
		"amount": {strconv.FormatInt(o.Amount, 10)}, "currency": {"eur"}, "metadata[order]": {o.ID},
		"customer": {o.Customer}, "payment_method": {o.Method}, "confirm": {"true"}, "off_session": {"true"},
		// Nobody is there whom a page of the bank could send back.
		"automatic_payment_methods[enabled]": {"true"}, "automatic_payment_methods[allow_redirects]": {"never"},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/payment_intents", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Idempotency-Key", id)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("charge order %s: %w", o.ID, err)
	}
	defer response.Body.Close()
	var intent struct{ Status string }
	err = json.NewDecoder(response.Body).Decode(&intent)
	switch {
	case response.StatusCode == http.StatusPaymentRequired:
		return middleware.Permanent(fmt.Errorf("charge order %s: the bank declines it, or asks for the customer", o.ID))
	case response.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("charge order %s: status %d", o.ID, response.StatusCode)
	case err != nil:
		return fmt.Errorf("charge order %s: %w", o.ID, err)
	case intent.Status == "processing":
		slog.InfoContext(ctx, "charge accepted", "order", o.ID, "amount", o.Amount)
		return nil
	case intent.Status != "succeeded":
		return middleware.Permanent(fmt.Errorf("charge order %s: the payment is not through, but %s", o.ID, intent.Status))
	}
	slog.InfoContext(ctx, "order charged", "order", o.ID, "amount", o.Amount)
	return nil
}

// idFor returns an id for one effect of an event, of 64 letters and digits. It
// is the same in every try and every delivery of the event, and differs between
// events, names and effects. Only a lock whose key has an Event knows which one
// it is.
func idFor(ctx context.Context, effect string) (string, error) {
	if _, ok := lock.FromContext(ctx); !ok {
		return "", errors.New("the handler has no lease")
	}
	for _, lease := range lock.Leases(ctx) {
		if k := lease.Key; k.Event != "" {
			sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", effect, k.Name, k.Event))
			return hex.EncodeToString(sum[:]), nil
		}
	}
	return "", errors.New("the handler has no lock whose key has an Event")
}
