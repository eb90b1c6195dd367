package s3store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// wanted is what a *driver.Error must say.
type wanted struct {
	temporary, refused bool
	action, hint       string
	read               bool // nothing was written, so nothing was applied
}

// called stands for the action of the request.
const called = "s3:*"

var answersOfS3 = map[string]struct {
	status        int
	code, message string
	want          wanted
}{
	"throttled":                         {503, "SlowDown", "Please reduce your request rate.", wanted{temporary: true, refused: true}},
	"internal error":                    {500, "InternalError", "", wanted{temporary: true}},
	"body came too late":                {400, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period.", wanted{temporary: true}},
	"denied":                            {403, "AccessDenied", "Access Denied", wanted{refused: true, action: called, hint: "allow the function's role, or who else asked, s3:GetObject and s3:PutObject on locks/rows/*"}},
	"denied by the bucket":              {403, "AccessDenied", `User: r is not authorized to perform: s3:PutObject on resource: "arn:aws:s3:::locks/rows/a" with an explicit deny in a resource-based policy`, wanted{refused: true, action: "s3:PutObject", hint: "the resource-based policy denies it explicitly"}},
	"missing key without s3:ListBucket": {403, "AccessDenied", `User: arn:aws:sts::123456789012:assumed-role/r/f is not authorized to perform: s3:ListBucket on resource: "arn:aws:s3:::locks" because no identity-based policy allows the s3:ListBucket action`, wanted{refused: true, action: "s3:ListBucket", hint: "allow it on the bucket"}},
	"key of another's":                  {403, "AccessDenied", "User: r is not authorized to perform: kms:GenerateDataKey on resource: k", wanted{refused: true, action: "kms:GenerateDataKey", hint: "encrypted with your own key"}},
	"no bucket":                         {404, "NoSuchBucket", "", wanted{refused: true, hint: "does not exist"}},
	"unknown":                           {418, "SomethingNew", "", wanted{temporary: true, refused: true}},
	"another Region":                    {301, "PermanentRedirect", "", wanted{refused: true, hint: "another Region"}},
	"signed for another Region":         {400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-1'", wanted{refused: true, hint: "another Region"}},
	"no conditions":                     {501, "NotImplemented", "", wanted{refused: true, hint: "conditional writes"}},
	"archived":                          {403, "InvalidObjectState", "The operation is not valid for the object's storage class", wanted{refused: true, hint: "exclude the prefix of the locks"}},
}

// TestErrors shows what the store makes of an answer to a read and to a write.
func TestErrors(t *testing.T) { // F9
	t.Parallel()
	for name, c := range answersOfS3 {
		for method, action := range map[string]string{http.MethodGet: "s3:GetObject", http.MethodPut: "s3:PutObject"} {
			t.Run(method+", "+name, func(t *testing.T) {
				t.Parallel()
				server, client := newServer(t)
				store := s3store.New(client, bucket, "rows")
				claim := claimAt(time.Now(), "n", "a")
				expect.Granted(store.Acquire(t.Context(), claim))(t)
				server.requests()
				server.fault = func(r *http.Request) *http.Response {
					if r.Method == method {
						return answers(c.status, c.code, c.message)
					}
					return nil
				}
				_, ok, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "b")) // reads
				if method == http.MethodPut {
					_, ok, err = store.Settle(t.Context(), settlement(claim)) // writes
				}
				want := c.want
				if want.read = method == http.MethodGet; want.action == called {
					want.action = action
				}
				checkError(t, err, want)
				if ok || len(server.requests()) > 1 && method == http.MethodGet && want.action == "" { // a denied read may hide that there is no object
					t.Errorf("applied %v, or more than one request", ok)
				}
			})
		}
	}
}

// TestThrottledAfterApplied: a claim that S3 has applied and answers with 503
// does not keep its name once it is given up.
func TestThrottledAfterApplied(t *testing.T) { // F8, F44
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := newServer(t)
		opened := func() *lock.Locker {
			store := s3store.New(client, bucket, "rows")
			expect.Must(t, store.Check(t.Context()))
			l := expect.Value(lock.New(store, &lock.Options{Logger: discard}))(t)
			return l
		}
		first, second := opened(), opened()
		throttled := 2
		server.fault = func(r *http.Request) *http.Response {
			if r.Method != http.MethodPut || throttled == 0 {
				return nil
			}
			throttled--
			if _, err := (fault.InProcess{Handler: server.handler}).RoundTrip(r); err != nil {
				t.Error(err)
			}
			return answers(503, "SlowDown", "Please reduce your request rate.")
		}
		var e *lock.StoreError
		if _, err := first.Acquire(t.Context(), lock.Key{Name: "n"}); !errors.As(err, &e) || !e.Answered || e.Unapplied {
			t.Errorf("got %#v", err)
		}
		if l, err := second.Acquire(t.Context(), lock.Key{Name: "n"}); err != nil {
			t.Errorf("the name is not free: %v", err)
		} else if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
}

// TestWrongClock: S3 refuses a request that is dated 15 minutes or more away.
// The SDK learns S3's time from that, and signs the next request with it.
func TestWrongClock(t *testing.T) { // F14
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		client := server.client(func(o *s3.Options) { o.BaseEndpoint = nil })
		server.advance(3 * time.Hour)
		server.fault = func(r *http.Request) *http.Response { return server.wrongClock(t, r) }
		store := s3store.New(client, bucket, "rows")
		_, _, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a"))
		var e *driver.Error
		if !errors.As(err, &e) || e.Lasting || !e.Answered || !e.Unapplied || !e.Conflict || !strings.Contains(e.Hint, "clock") {
			t.Errorf("got %#v", err)
		}
		if _, ok, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a")); !ok || err != nil {
			t.Errorf("then: granted %v, error %v", ok, err)
		}
	})
}

// wrongClock returns the answer to a request with a wrong date, otherwise nil.
func (s *server) wrongClock(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Error(err)
	}
	if s.Now().Sub(signed).Abs() < 15*time.Minute {
		return nil
	}
	a := answers(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
	a.Header.Set("Date", s.Now().Format(http.TimeFormat))
	return a
}

func checkError(t *testing.T, err error, want wanted) {
	t.Helper()
	var e *driver.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *driver.Error", err)
	}
	unapplied := want.read || want.refused && !want.temporary // a write that S3 throttles may have been applied
	if got := (wanted{!e.Lasting, e.Answered, e.Action, e.Hint, e.Unapplied}); got.temporary != want.temporary || got.refused != want.refused || e.Unapplied != unapplied || got.action != want.action ||
		!strings.Contains(got.hint, want.hint) || want.hint == "" && got.hint != "" {
		t.Errorf("got %+v of %v, want %+v", got, err, want)
	}
	if e.Store != "S3 bucket locks, prefix rows/" {
		t.Errorf("the error names %q", e.Store)
	}
}

// TestConditions: an answer that a condition did not hold is not an error, and
// the store looks at the row again.
func TestConditions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		code, page string
	}{
		"condition failed": {412, "PreconditionFailed", ""},
		"without a body":   {412, "", ""},
		"page of a proxy":  {412, "", "<html>Precondition Failed<br></html>"},
		"another write":    {409, "ConditionalRequestConflict", ""},
		"another step":     {409, "OperationAborted", ""},
		"object is gone":   {404, "NoSuchKey", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, client := newServer(t)
			store := s3store.New(client, bucket, "rows")
			claim := claimAt(time.Now(), "n", "a")
			expect.Granted(store.Acquire(t.Context(), claim))(t)
			server.requests()
			times := 1
			server.fault = func(r *http.Request) *http.Response {
				if r.Method == http.MethodPut && times > 0 {
					times--
					return answers(c.status, c.code, c.page)
				}
				return nil
			}
			if row, ok, err := store.Settle(t.Context(), settlement(claim)); !ok || err != nil {
				t.Errorf("released %v, %+v, error %v", ok, row, err)
			}
			if got := strings.Join(server.requests(), ", "); got != "PUT /locks/rows/n if unchanged, GET /locks/rows/n, PUT /locks/rows/n if unchanged" {
				t.Errorf("made the requests %s", got)
			}
			times = 100
			var e *driver.Error
			if _, ok, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "b")); ok || !errors.As(err, &e) || !e.Conflict {
				t.Errorf("granted %v, error %v, want a conflict", ok, err)
			}
		})
	}
	t.Run("no object of a new one", func(t *testing.T) {
		t.Parallel()
		server, client := newServer(t)
		store := s3store.New(client, bucket, "rows")
		expect.Granted(store.Acquire(t.Context(), claimAt(time.Now(), "n", "a")))(t)
		server.fault = func(r *http.Request) *http.Response { return answers(404, "NoSuchKey", "") }
		_, _, err := store.Acquire(t.Context(), claimAt(time.Now(), "m", "a"))
		checkError(t, err, wanted{temporary: true, refused: true}) // S3 does not answer so
	})
}

// TestNoAnswer: without an answer a write may have been applied.
func TestNoAnswer(t *testing.T) { // F7
	t.Parallel()
	for name, c := range map[string]struct {
		err        error
		text, hint string
	}{
		"no address":     {&net.DNSError{Err: "no such host", Name: "s3.test"}, "lookup s3.test: no such host", "VPC"},
		"refused":        {&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, "dial tcp: connection refused", "VPC"},
		"timeout":        {context.DeadlineExceeded, "no answer in time", "VPC"},
		"caller ended":   {context.Canceled, "the caller's context ended before there was an answer", ""},
		"broken in half": {io.ErrUnexpectedEOF, "no answer: unexpected EOF", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, client := newServer(t)
			store := s3store.New(failing{client, c.err}, bucket, "rows")
			_, _, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a"))
			checkError(t, err, wanted{temporary: true, hint: c.hint})
			if !strings.Contains(err.Error(), ": "+c.text) || !errors.Is(err, c.err) {
				t.Errorf("got %v, want %s", err, c.text)
			}
		})
	}
}

// failing is a client of the user's own whose requests get no answer.
type failing struct {
	s3store.Client
	err error
}

func (f failing) PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return nil, &smithy.OperationError{ServiceID: "S3", OperationName: "PutObject", Err: f.err}
}

// TestBrokenBody: a connection that breaks in the middle of an answer.
func TestBrokenBody(t *testing.T) { // F5
	t.Parallel()
	for name, cut := range map[string]error{
		"ended":  io.ErrUnexpectedEOF,
		"reset":  &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET},
		"closed": &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed},
	} {
		for _, status := range []int{200, 403, 404} {
			t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
				t.Parallel()
				server, client := newServer(t)
				store := s3store.New(client, bucket, "rows")
				expect.Granted(store.Acquire(t.Context(), claimAt(time.Now(), "n", "a")))(t)
				server.fault = func(r *http.Request) *http.Response {
					response := answers(status, "", "")
					response.Body = io.NopCloser(io.MultiReader(strings.NewReader("<Error><Code>Acc"), broken{cut}))
					return response
				}
				_, err := store.Read(t.Context(), "n")
				var e *driver.Error
				if !errors.As(err, &e) || e.Lasting || e.Answered || e.Unapplied || !errors.Is(err, cut) {
					t.Errorf("got %#v, want one that may be repeated", err)
				}
			})
		}
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// TestClientOfTheUsersOwn: a client that answers without HTTP.
func TestClientOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	_, client := newServer(t)
	for code, want := range map[string]wanted{
		"AccessDenied": {refused: true, action: "s3:PutObject", hint: "allow"},
		"SlowDown":     {temporary: true, refused: true},
	} {
		t.Run(code, func(t *testing.T) {
			store := s3store.New(failing{client, &smithy.GenericAPIError{Code: code}}, bucket, "rows")
			_, _, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a"))
			checkError(t, err, want)
		})
	}
	t.Run("PreconditionFailed", func(t *testing.T) {
		store := s3store.New(failing{client, &smithy.GenericAPIError{Code: "PreconditionFailed"}}, bucket, "rows")
		var e *driver.Error
		if _, _, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a")); !errors.As(err, &e) || !e.Conflict {
			t.Errorf("got %v, want a conflict", err)
		}
	})
}

func TestNoBucket(t *testing.T) {
	t.Parallel()
	_, client := newServer(t)
	unusable(t, "no bucket", s3store.New(client, "", "rows"))
	unusable(t, "no client", s3store.New(nil, "locks", "rows"))
	unusable(t, "nil client", s3store.New((*s3.Client)(nil), "locks", "rows"))
}

// unusable checks that every request says what to pass to New.
func unusable(t *testing.T, why string, store *objectstore.Store) {
	t.Helper()
	for name, request := range map[string]func() error{
		"acquire": func() error { _, _, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a")); return err },
		"check":   func() error { return store.Check(t.Context()) },
		"rows": func() error {
			for _, err := range store.Rows(t.Context(), "") {
				return err
			}
			return nil
		},
	} {
		var e *driver.ConfigError
		if err := request(); !errors.As(err, &e) || !strings.Contains(err.Error(), "s3store.New") {
			t.Errorf("%s, %s: got %v, want a *driver.ConfigError", why, name, err)
		}
	}
}

// TestListErrors: only a person who lists rows needs s3:ListBucket for that.
func TestListErrors(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	store := s3store.New(client, bucket, "rows")
	server.fault = func(*http.Request) *http.Response { return answers(403, "AccessDenied", "Access Denied") }
	for _, err := range store.Rows(t.Context(), "") {
		checkError(t, err, wanted{refused: true, action: "s3:ListBucket", hint: "on the bucket"})
	}
	s3s := s3store.New(server.client(func(o *s3.Options) { o.BaseEndpoint = nil }), bucket, "rows")
	if err := s3s.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err) // it may be allowed for the names that are locked
	}
	checkError(t, store.Check(t.Context()), wanted{refused: true, action: "s3:PutObject", hint: "allow the function's role, or who else asked, s3:GetObject and s3:PutObject on locks/rows/*"})
	server.fault = func(*http.Request) *http.Response { return answers(404, "NoSuchBucket", "") }
	checkError(t, store.Check(t.Context()), wanted{refused: true, hint: "does not exist"})
}

// TestLargeObject: something else is under the key, and larger than any row.
func TestLargeObject(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	server.fault = func(*http.Request) *http.Response {
		response := answers(200, "", "")
		response.Header.Set("ETag", `"1"`)
		response.Body = io.NopCloser(io.LimitReader(spaces{}, 1<<40))
		return response
	}
	_, err := s3store.New(client, bucket, "rows").Read(t.Context(), "n")
	checkError(t, err, wanted{refused: true})
}

type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}
