package batching_test

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
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestStatementTexts shows all texts that are sent, as the documents and the
// servers in package integration know them.
func TestStatementTexts(t *testing.T) {
	t.Parallel()
	const (
		insert   = `INSERT INTO "locks" VALUE {'lock': ?, 'ownerToken': ?, 'heldUntil': ?, 'stamp': ?, 'fence': ?, 'holder': ?, 'deleteAfter': ?`
		set      = `UPDATE "locks" SET ownerToken = ?, heldUntil = ?, stamp = ?, fence = ?, holder = ?, deleteAfter = ?`
		claim    = ` WHERE "lock" = ? AND rowFormat IS MISSING AND (((ownerToken IS MISSING OR (heldUntil < ? AND interruptedFor IS MISSING)) AND (stamp IS MISSING OR stamp < ?)) OR (ownerToken = ? AND heldUntil <= ? AND stamp <= ?))`
		event    = ` AND (completed."e:1" IS MISSING OR completed."e:1" < ?)`
		order    = ` AND (highestOrder IS MISSING OR highestOrder < ?)`
		old      = ` RETURNING ALL OLD *`
		released = ` REMOVE ownerToken REMOVE heldUntil REMOVE cooldown REMOVE holder REMOVE event REMOVE payload REMOVE takesMarks REMOVE interruptedFor`
		owner    = ` WHERE "lock" = ? AND rowFormat IS MISSING AND ownerToken = ?`
	)
	completed := []driver.CompletedEvent{{Event: "e:1", Until: time.Now()}}
	withPayload := []driver.CompletedEvent{{Event: "e:1", Payload: "p", Until: time.Now()}}
	for name, c := range map[string]struct {
		event, order, payload string
		memory                *driver.Memory
		cooldown, takesMarks  bool
		want                  []string
	}{
		"mutex":             {want: []string{insert + "}", set + " REMOVE cooldown REMOVE event REMOVE payload REMOVE takesMarks REMOVE interruptedFor" + claim + old, "UPDATE \"locks\" SET deleteAfter = ?" + released + owner}},
		"order":             {order: "1", want: []string{insert + "}", set + " REMOVE cooldown REMOVE event REMOVE payload REMOVE takesMarks REMOVE interruptedFor" + claim + order + old, "UPDATE \"locks\" SET deleteAfter = ?" + released + owner}},
		"event":             {event: "e:1", memory: &driver.Memory{Completed: completed}, want: []string{insert + ", 'event': ?}", set + ", event = ? REMOVE cooldown REMOVE payload REMOVE takesMarks REMOVE interruptedFor" + claim + event + old, "UPDATE \"locks\" SET deleteAfter = ?, completed = ?" + released + " REMOVE marks REMOVE payloads REMOVE interrupted REMOVE highestOrder REMOVE resultBody REMOVE resultEvent" + owner}},
		"event and order":   {event: "e:1", order: "1", memory: &driver.Memory{Completed: completed, HighestOrder: "1"}, want: []string{insert + ", 'event': ?}", set + ", event = ? REMOVE cooldown REMOVE payload REMOVE takesMarks REMOVE interruptedFor" + claim + event + order + old, "UPDATE \"locks\" SET deleteAfter = ?, completed = ?, highestOrder = ?" + released + " REMOVE marks REMOVE payloads REMOVE interrupted REMOVE resultBody REMOVE resultEvent" + owner}},
		"payload":           {event: "e:1", payload: "p", memory: &driver.Memory{Completed: withPayload, Result: driver.Result{Event: "e:1", Body: []byte("1")}}, want: []string{insert + ", 'event': ?, 'payload': ?}", set + ", event = ?, payload = ? REMOVE cooldown REMOVE takesMarks REMOVE interruptedFor" + claim + event + old, "UPDATE \"locks\" SET deleteAfter = ?, completed = ?, payloads = ?, resultBody = ?, resultEvent = ?" + released + " REMOVE marks REMOVE interrupted REMOVE highestOrder" + owner}},
		"payload and order": {event: "e:1", order: "1", payload: "p", memory: &driver.Memory{Completed: withPayload, Result: driver.Result{Event: "older"}, HighestOrder: "1"}, want: []string{insert + ", 'event': ?, 'payload': ?}", set + ", event = ?, payload = ? REMOVE cooldown REMOVE takesMarks REMOVE interruptedFor" + claim + event + order + old, "UPDATE \"locks\" SET deleteAfter = ?, completed = ?, payloads = ?, highestOrder = ?" + released + " REMOVE marks REMOVE interrupted" + owner}},
		"cooldown":          {cooldown: true, want: []string{insert + "}", set + " REMOVE cooldown REMOVE event REMOVE payload REMOVE takesMarks REMOVE interruptedFor" + claim + old, "UPDATE \"locks\" SET deleteAfter = ?, ownerToken = ?, cooldown = ?, heldUntil = ? REMOVE holder REMOVE event REMOVE payload REMOVE takesMarks REMOVE interruptedFor" + owner}},
		"marks":             {event: "e:1", payload: "p", takesMarks: true, want: []string{insert + ", 'event': ?, 'payload': ?, 'takesMarks': ?}", set + ", event = ?, payload = ?, takesMarks = ? REMOVE cooldown REMOVE interruptedFor" + claim + event + old, "UPDATE \"locks\" SET deleteAfter = ?" + released + owner}},
		"nothing completed": {memory: &driver.Memory{}, want: []string{insert + "}", set + " REMOVE cooldown REMOVE event REMOVE payload REMOVE takesMarks REMOVE interruptedFor" + claim + old, "UPDATE \"locks\" SET deleteAfter = ?" + released + " REMOVE marks REMOVE completed REMOVE payloads REMOVE interrupted REMOVE highestOrder REMOVE resultBody REMOVE resultEvent" + owner}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *fixture) {
				claims := claimsOf("name", 2)
				for _, cl := range claims {
					cl.Event, cl.Order, cl.Payload, cl.TakesMarks = c.event, c.order, c.payload, c.takesMarks
				}
				f.mustAcquire(t, claims...)
				f.mustAcquire(t, claims...) // the names are known
				release := func(i int) func(context.Context) {
					return func(ctx context.Context) {
						s := &driver.Settlement{Name: claims[i].Name, Token: claims[i].Token, Memory: c.memory}
						if c.cooldown {
							s.Until, s.CooldownToken = claims[i].Until, "cools"
						}
						if _, ok, err := f.store.Settle(ctx, s); !ok || err != nil {
							t.Errorf("release: %v, %v", ok, err)
						}
					}
				}
				company(t.Context(), release(0), release(1))
				var want []string
				for _, text := range c.want {
					want = append(want, "BatchExecuteStatement", text, text)
				}
				if got := f.take(); !slices.Equal(got, want) {
					t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		})
	}
}

// choosy is a server that calls a statement invalid if its text has a part, as
// a member or with its whole request.
type choosy struct {
	*fixture
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
		s.fixture.ServeHTTP(w, r)
		return
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.mu.Lock()
	s.sent = append(s.sent, operation)
	s.mu.Unlock()
	if s.request {
		refusal("400 ValidationException")(w, r)
		return
	}
	codes := make([]types.BatchStatementErrorCodeEnum, len(in.Statements)) // all are of one kind here
	for i := range codes {
		codes[i] = types.BatchStatementErrorCodeEnumValidationError
	}
	memberRefusals(codes...)(w, r)
}

// TestInvalidStatements shows that a kind of statement that a server calls
// invalid is sent alone from then on, with one warning for each, and the other
// kinds still together.
func TestInvalidStatements(t *testing.T) {
	const refuses = "REMOVE heldUntil" // the second REMOVE of a release
	for name, c := range map[string]struct {
		part    string
		request bool
		claims  bool // of new names are sent alone
		ends    bool // releases are sent alone

		warnings int
	}{
		"release, as a member":   {part: refuses, ends: true, warnings: 1},
		"release, as a request":  {part: refuses, request: true, ends: true, warnings: 1},
		"insert, as a member":    {part: "INSERT", claims: true, warnings: 1},
		"everything, as request": {part: "heldUntil", request: true, claims: true, ends: true, warnings: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			defer slog.SetDefault(before)
			inFakeTime(t, func(t *testing.T, f *fixture) {
				f.store = storeOf(choosy{f, c.part, c.request})
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
				if got := log.String(); strings.Count(got, "\n") != c.warnings || !strings.Contains(got, ": said") || !strings.Contains(got, "one by one") {
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
	inFakeTime(t, func(t *testing.T, f *fixture) {
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

func (f *fixture) cycle(t *testing.T, claims []*driver.Claim) {
	t.Helper()
	f.mustAcquire(t, claims...)
	f.release(t, claims)
}

// release releases all names together.
func (f *fixture) release(t *testing.T, claims []*driver.Claim) {
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
