package dynamostore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// choosy is a server that calls a statement invalid if its text has a part, as
// a member or with its whole request.
type choosy struct {
	*companyFixture
	part    string
	request bool
}

// ServeHTTP implements http.Handler.
func (s choosy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct{ Statements []map[string]any }
	_ = json.Unmarshal(body, &in)
	bad := func(statement map[string]any) bool { return strings.Contains(statement["Statement"].(string), s.part) }
	if !slices.ContainsFunc(in.Statements, bad) {
		s.companyFixture.ServeHTTP(w, r)
		return
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.mu.Lock()
	s.sent = append(s.sent, operation)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if s.request {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazon.coral.validate#ValidationException","message":"unexpected token"}`)
		return
	}
	var out struct{ Responses []map[string]any }
	for range in.Statements { // all are of one kind here
		out.Responses = append(out.Responses, map[string]any{"Error": map[string]string{"Code": "ValidationError", "Message": "unexpected token"}})
	}
	_ = json.NewEncoder(w).Encode(out)
}

// TestInvalidStatements shows that a kind of statement that a server calls
// invalid is sent alone from then on, with one warning, and the other kinds
// still together.
func TestInvalidStatements(t *testing.T) {
	const refuses = "REMOVE heldUntil" // the second REMOVE of a release
	for name, c := range map[string]struct {
		part    string
		request bool
		claims  bool // of new names are sent alone
		ends    bool // releases are sent alone
	}{
		"release, as a member":   {part: refuses, ends: true},
		"release, as a request":  {part: refuses, request: true, ends: true},
		"insert, as a member":    {part: "INSERT", claims: true},
		"everything, as request": {part: "heldUntil", request: true, claims: true, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			defer slog.SetDefault(before)
			inFakeTime(t, func(t *testing.T, f *companyFixture) {
				f.store = dynamostore.New(clientOf(choosy{f, c.part, c.request}), table).InBatches()
				f.cycle(t, claimsOf("name", 25))
				claims := claimsOf("other", 25)
				f.take()
				f.mustAcquire(t, claims...)
				if together := slices.Contains(f.take(), "BatchExecuteStatement"); together == c.claims {
					t.Errorf("claims are sent together: %t", together)
				}
				f.release(t, claims)
				if together := slices.Contains(f.take(), "BatchExecuteStatement"); together == c.ends {
					t.Errorf("releases are sent together: %t", together)
				}
				if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "unexpected token") || !strings.Contains(got, "one by one") {
					t.Errorf("logged %s", got)
				}
			})
		})
	}
}

// TestInvalidValues shows that a request that is invalid by itself, too, says
// nothing about its kind.
func TestInvalidValues(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, f *companyFixture) {
		claims := claimsOf("name", 3)
		claims[0].Name = ""
		_ = f.acquire(t.Context(), claims...)
		f.take()
		f.mustAcquire(t, claimsOf("other", 3)...)
		if got := f.take(); !slices.Contains(got, "BatchExecuteStatement") {
			t.Errorf("sent %q", got)
		}
	})
}

func (f *companyFixture) cycle(t *testing.T, claims []*driver.Claim) {
	t.Helper()
	f.mustAcquire(t, claims...)
	f.release(t, claims)
}

// release releases all names together.
func (f *companyFixture) release(t *testing.T, claims []*driver.Claim) {
	t.Helper()
	var requests []func(context.Context)
	for _, c := range claims {
		requests = append(requests, func(ctx context.Context) {
			if _, ok, err := f.store.Settle(ctx, &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter}); !ok || err != nil {
				t.Errorf("release of %s: %v, %v", c.Name, ok, err)
			}
		})
	}
	company(t.Context(), requests...)
}
