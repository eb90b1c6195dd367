package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/lambdalock/lambdalock/internal/local/localsqs"
	"github.com/lambdalock/lambdalock/internal/local/sqslimits"
)

// serveS3 logs every object that a function writes, in the form of the
// functions' log.
func (st *stage) serveS3(objects *s3mem.Backend) http.Handler {
	server := gofakes3.New(objects, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		server.ServeHTTP(rw, r)
		bucket, key, _ := strings.Cut(path[1:], "/")
		if o, err := objects.GetObject(bucket, key, nil); err == nil && r.Method == http.MethodPut {
			body, _ := io.ReadAll(o.Contents) // from memory
			st.logged(0, fmt.Sprintf(`{"timestamp":%q,"message":%q,"path":%q,"body":%q,"fence":%q}`,
				time.Now().UTC().Format(time.RFC3339Nano), put, path, body, o.Metadata["X-Amz-Meta-Fence"]))
		}
	})
}

// serveOthers answers an asynchronous invocation of another function, and is a
// bank that takes every payment up to 9,999.99, also twice, and Stripe.
func (st *stage) serveOthers(rw http.ResponseWriter, r *http.Request) {
	id, asks := strings.CutPrefix(r.URL.Path, "/payments/")
	var payment struct {
		ID     string
		Amount int64
	}
	switch {
	case asks:
		if !slices.ContainsFunc(st.work(), func(w string) bool { return strings.HasPrefix(w, id+" ") }) {
			rw.WriteHeader(http.StatusNotFound)
		}
	case r.URL.Path == "/v1/payment_intents":
		st.serveCharge(rw, r)
	case r.URL.Path != "/payments":
		rw.WriteHeader(http.StatusAccepted)
	case json.NewDecoder(r.Body).Decode(&payment) != nil || payment.Amount >= 1_000_000:
		rw.WriteHeader(http.StatusBadRequest)
	default:
		st.logged(0, fmt.Sprintf(`{"timestamp":%q,"message":%q,"invoice":%q,"amount":%d}`, time.Now().UTC().Format(time.RFC3339Nano), paid, payment.ID, payment.Amount))
		if st.loses.Swap(false) {
			panic(http.ErrAbortHandler)
		}
	}
}

// serveCharge answers as Stripe does. It recognises a repeated request by its
// id, and charges only a payment intent that is confirmed.
func (st *stage) serveCharge(rw http.ResponseWriter, r *http.Request) {
	status, method := "succeeded", r.FormValue("payment_method")
	amount, err := strconv.Atoi(r.FormValue("amount"))
	switch {
	case err != nil || amount < 1:
		rw.WriteHeader(http.StatusBadRequest)
		return
	case r.FormValue("confirm") != "true":
		status = "requires_confirmation"
	case r.FormValue("automatic_payment_methods[allow_redirects]") != "never":
		rw.WriteHeader(http.StatusBadRequest) // it wants a return_url
		return
	case method == "pm_declined":
		rw.WriteHeader(http.StatusPaymentRequired)
		return
	default:
		if method == "pm_debit" {
			status = "processing" // for days
		}
		if _, again := st.charged.LoadOrStore(r.Header.Get("Idempotency-Key"), true); !again {
			st.logged(0, fmt.Sprintf(`{"timestamp":%q,"message":%q,"order":%q,"amount":%d}`, time.Now().UTC().Format(time.RFC3339Nano), paid, r.FormValue("metadata[order]"), amount))
		}
	}
	fmt.Fprintf(rw, `{"object": "payment_intent", "status": %q}`, status)
}

// queues answers the requests of package redelivery, and notes them.
func (st *stage) queues() http.Handler {
	return &localsqs.Server{
		Change: func(_ string, invisible time.Duration) {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.visible = append(st.visible, invisible)
		},
		Delete: func(receipt string) { st.fail("the function deletes %s", receipt) },
		Send:   func(*sqslimits.Message) { st.dead.Add(1) },
	}
}
