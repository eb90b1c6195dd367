package middleware_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambdaurl"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

var created = reply{status: http.StatusCreated, headers: map[string]string{"content-type": "text/plain", "location": "/orders/<7>"}, body: "receipt <7> & \x00\xff\u2028"}

// TestHTTPReplay shows that a repeated request gets the first response again,
// byte for byte and marked, and that the handler does not run.
func TestHTTPReplay(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 204, 302, 400, 402, 404, 405, 410, 413, 414, 418, 422, 424, 451, 499} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
				f, runs := newFixture(), 0
				want := created
				want.status = status
				call := r(t, f, required, func() (reply, error) { runs++; return want, nil })
				first, err := call(doc)
				if err != nil || first.status != status || first.mark() != "" {
					t.Fatalf("first: %+v, %v", first, err)
				}
				for range 2 {
					again, err := call(doc)
					if err != nil || again.status != status || again.body != first.body || again.mark() != "true" ||
						again.headers["content-type"] != first.headers["content-type"] || again.headers["location"] != first.headers["location"] {
						t.Errorf("again: %+v, %v; first %+v", again, err, first)
					}
				}
				if runs != 1 {
					t.Errorf("%d runs", runs)
				}
				f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted, lock.OutcomeAlreadyCompleted)
			})
		})
	}
}

// TestHTTPFailureRunsAgain shows that the retry of a request runs if the first
// one failed, and that only a success is then replayed.
func TestHTTPFailureRunsAgain(t *testing.T) { // F36, F49, F62
	t.Parallel()
	boom := errors.New("boom")
	status := func(code int) work { return func() (reply, error) { return reply{status: code, body: "later"}, nil } }
	failures := map[string]work{
		"error": func() (reply, error) { return created, boom },
		"panic": func() (reply, error) { panic("boom") },
	}
	for _, code := range []int{
		99, 100, 101, 103, 199, 401, 403, 406, 407, 408, 409, 411, 412, 415, 416, 417, 421, 423, 425, 426, 428, 429, 431, 500, 503, 511, 599, 1000,
	} {
		failures[strconv.Itoa(code)] = status(code)
	}
	for name, failing := range failures {
		t.Run(name, func(t *testing.T) {
			onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
				f, runs := newFixture(), 0
				call := r(t, f, required, func() (reply, error) {
					if runs++; runs <= 2 {
						return failing()
					}
					return created, nil
				})
				for range 2 {
					func() {
						defer func() { _ = recover() }()
						if got, err := call(doc); err == nil && (got.body != "later" || got.mark() != "") || err != nil && err != boom {
							t.Errorf("%+v, %v", got, err)
						}
					}()
				}
				for range 2 {
					if got, err := call(doc); err != nil || got.status != created.status {
						t.Errorf("%+v, %v", got, err)
					}
				}
				if runs != 3 {
					t.Errorf("%d runs, want the two that failed and one", runs)
				}
			})
		})
	}
}

// TestHTTPInProgress shows that the second of two simultaneous requests gets
// status 409 and runs when it comes again, if the first one failed.
func TestHTTPInProgress(t *testing.T) {
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f := newFixture()
		var call func([]byte) (reply, error)
		call = r(t, f, required, func() (reply, error) {
			got, err := call(doc)
			wantProblem(t, got, err, http.StatusConflict, "already in progress")
			if got.headers["retry-after"] != "1" {
				t.Errorf("Retry-After: %q", got.headers["retry-after"])
			}
			return created, nil
		})
		if got, err := call(doc); err != nil || got.status != created.status {
			t.Errorf("%+v, %v", got, err)
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeHeld, lock.OutcomeReleased)
	})
}

// wantProblem checks that the client gets a problem document.
func wantProblem(t *testing.T, got reply, err error, status int, detail string) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if jsonErr := json.Unmarshal([]byte(got.body), &p); err != nil || jsonErr != nil || got.status != status || got.headers["content-type"] != "application/problem+json" ||
		p.Status != status || p.Type != "about:blank" || p.Title != http.StatusText(status) || !strings.Contains(p.Detail, detail) || got.mark() != "" {
		t.Errorf("%+v, %v; want a problem document with status %d and %q", got, err, status, detail)
	}
	if len(got.headers) > 1 && status != http.StatusConflict {
		t.Errorf("headers %v", got.headers)
	}
}

// TestHTTPMismatch shows that a key that was used for another request gets
// status 422, while the first is in progress and when it is completed.
func TestHTTPMismatch(t *testing.T) { // F37
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f, other := newFixture(), edited(t, doc, withOtherBody)
		var call func([]byte) (reply, error)
		call = r(t, f, required, func() (reply, error) {
			got, err := call(other)
			wantProblem(t, got, err, http.StatusUnprocessableEntity, "another request")
			return created, nil
		}, middleware.OnHeld(middleware.Wait(1e9)))
		if got, err := call(doc); err != nil || got.status != created.status {
			t.Errorf("%+v, %v", got, err)
		}
		got, err := call(other)
		wantProblem(t, got, err, http.StatusUnprocessableEntity, "another request")
		f.want(t, lock.OutcomeAcquired, lock.OutcomeMismatch, lock.OutcomeReleased, lock.OutcomeMismatch)
	})
}

// TestHTTPWithoutKey shows that a request without a key gets status 400, or
// runs without a lock if the key is optional, and that a malformed key and an
// event of another source are refused in both cases.
func TestHTTPWithoutKey(t *testing.T) { // F26
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f, runs := newFixture(), 0
		do := func() (reply, error) { runs++; return created, nil }
		keyless := edited(t, doc, withoutHeader)
		malformed := edited(t, keyless, func(e map[string]any) {
			if e["headers"] == nil {
				e["headers"] = map[string]any{}
			}
			e["headers"].(map[string]any)["idempotency-key"] = ""
		})
		foreign := edited(t, doc, func(e map[string]any) { delete(e, "requestContext") })
		for _, o := range []keyOption{required, optional} {
			call := r(t, f, o, do)
			if got, err := call(keyless); o == required {
				wantProblem(t, got, err, http.StatusBadRequest, "is missing")
				f.want(t, lock.OutcomeRefused)
			} else if err != nil || got.status != created.status || runs != 1 {
				t.Errorf("optional: %+v, %v, %d runs", got, err, runs)
			} else {
				f.want(t, middleware.OutcomeNoLock)
			}
			got, err := call(malformed)
			wantProblem(t, got, err, http.StatusBadRequest, "is empty")
			f.want(t, lock.OutcomeRefused)
			if got, err := call(foreign); !errors.As(err, new(*lock.NoKeyError)) {
				t.Errorf("another source: %+v, %v; want an error", got, err)
			}
			f.want(t, lock.OutcomeRefused)
		}
		if runs != 1 || f.faulty.Requests(fault.Acquire) != 0 {
			t.Errorf("%d runs, %d requests; want one, without a lock", runs, f.faulty.Requests(fault.Acquire))
		}
	})
}

// TestHTTPResponseTooLarge shows that a repeated request gets status 409, and
// never a zero response, if the first response was too large to be stored.
func TestHTTPResponseTooLarge(t *testing.T) { // F35
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f := newFixture()
		call := r(t, f, required, func() (reply, error) { return reply{status: 200, body: strings.Repeat("x", 400<<10)}, nil })
		if got, err := call(doc); err != nil || len(got.body) != 400<<10 {
			t.Errorf("status %d, %d bytes, %v", got.status, len(got.body), err)
		}
		if f.count(lock.OutcomeResultDropped) != 1 {
			t.Errorf("%v", f.outcomes())
		}
		got, err := call(doc)
		wantProblem(t, got, err, http.StatusConflict, "not stored")
		if after, ok := got.headers["retry-after"]; ok {
			t.Errorf("Retry-After: %q, although no retry gets the response", after)
		}
	})
}

// TestNetHTTPHandler shows that a handler for net/http behind a Function URL
// that streams has the same answers.
func TestNetHTTPHandler(t *testing.T) {
	t.Parallel()
	f, runs := newFixture(), 0
	h := middleware.WithLock(keyFor[urlEvent](optional), lambdaurl.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if runs++; runs == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusCreated)
		for _, part := range []string{r.Method, " ", r.URL.Path, " ", string(body)} {
			_, _ = io.WriteString(w, part)
		}
	})), f.options()...)
	call := func(change func(*urlEvent)) reply {
		var e urlEvent
		expect.Must(t, json.Unmarshal(gatewayEvent(t, "functionurl"), &e))
		change(&e)
		out, err := h(t.Context(), &e)
		got := expect.Value(sent(t, out, err))(t)
		return got
	}
	same := func(*urlEvent) {}
	if got := call(same); got.status != http.StatusServiceUnavailable {
		t.Errorf("%+v", got)
	}
	for _, mark := range []string{"", "true", "true"} {
		if got := call(same); got.status != http.StatusCreated || !strings.HasPrefix(got.body, "POST /orders/7 {") || got.headers["content-type"] != "text/plain" || got.mark() != mark {
			t.Errorf("%+v; want the mark %q", got, mark)
		}
	}
	got := call(func(e *urlEvent) { e.Body = "other" + e.Body; e.IsBase64Encoded = false })
	wantProblem(t, got, nil, http.StatusUnprocessableEntity, "another request")
	for range 2 {
		if got := call(func(e *urlEvent) { e.RequestContext.HTTP.Method = "GET"; delete(e.Headers, "idempotency-key") }); !strings.HasPrefix(got.body, "GET /orders/7") {
			t.Errorf("without a key: %+v", got)
		}
	}
	if runs != 4 {
		t.Errorf("%d runs, want one that failed, one that was replayed and two without a key", runs)
	}
}
