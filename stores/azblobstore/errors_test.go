package azblobstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azuretest"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

func objectsOver(t *testing.T, do azuretest.Transport, credential azcore.TokenCredential) objectstore.Objects {
	options := &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: do}}
	client, err := container.NewClientWithNoCredential("https://fake.blob.core.windows.net/c?sig=secret", options)
	if credential != nil {
		client, err = container.NewClient("https://fake.blob.core.windows.net/c", credential, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	return azblobstore.NewObjects(client, "")
}

// said is the body of an answer as the service writes it.
func said(message string) string {
	return "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>c</Code><Message>" + message + "\nRequestId:3\nTime:2026</Message></Error>"
}

func failing(err error) azuretest.Transport {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func TestErrors(t *testing.T) {
	t.Parallel()
	const write = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write"
	for name, c := range map[string]struct {
		do                 azuretest.Transport
		temporary, refused bool
		action             string
		text, hint         string
	}{
		"throttled":            {azuretest.Answering(503, "ServerBusy", said("Operations per second is over the account limit.")), true, true, "", "503 ServerBusy: Operations per second is over the account limit.", ""},
		"timed out":            {azuretest.Answering(500, "OperationTimedOut", said("Try again.")), true, false, "", "500 OperationTimedOut: Try again.", ""},
		"no permission":        {azuretest.Answering(403, "AuthorizationPermissionMismatch", said("No.")), false, true, write, "403 AuthorizationPermissionMismatch: No.", "the role Storage Blob Data Contributor on the container"},
		"no permission to add": {azuretest.Answering(403, "UnauthorizedBlobOverwrite", said("No.")), false, true, write, "403 UnauthorizedBlobOverwrite: No.", "(rcwl)"},
		"network rules":        {azuretest.Answering(403, "AuthorizationFailure", said("No.")), false, true, write, "403 AuthorizationFailure: No.", "network rules"},
		"wrong key":            {azuretest.Answering(403, "AuthenticationFailed", said("No.")), false, true, "", "403 AuthenticationFailed: No.", "clock"},
		"no container":         {azuretest.Answering(404, "ContainerNotFound", said("No.")), false, true, "", "404 ContainerNotFound: No.", "create the container"},
		"immutable":            {azuretest.Answering(409, "BlobImmutableDueToPolicy", said("No.")), false, true, "", "409 BlobImmutableDueToPolicy: No.", "immutability policy"},
		"archived":             {azuretest.Answering(409, "BlobArchived", said("No.")), false, true, "", "409 BlobArchived: No.", "archive tier"},
		"leased":               {azuretest.Answering(412, "LeaseIdMissing", said("No.")), false, true, "", "412 LeaseIdMissing: No.", "break the lease"},
		"a transport's own":    {failing(&azcore.ResponseError{StatusCode: 418}), true, true, "", "418", ""},
		"no address":           {failing(&net.DNSError{Err: "no such host", Name: "fake.test"}), true, false, "", "lookup fake.test: no such host", "private endpoints"},
		"refused":              {failing(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}), true, false, "", "dial tcp: connection refused", "network rules"},
		"broken":               {failing(fmt.Errorf("https://fake.test/c?sig=secret: %w", io.ErrUnexpectedEOF)), true, false, "", "no answer: unexpected EOF", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := objectsOver(t, c.do, nil).Put(t.Context(), "k", []byte("x"), "")
			var e *driver.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a *driver.Error", err)
			}
			if e.Lasting == c.temporary || e.Answered != c.refused || e.Unapplied != (c.refused && !c.temporary) || e.Conflict || e.Action != c.action || e.Store != "Azure container https://fake.blob.core.windows.net/c" {
				t.Errorf("got %+v", e)
			}
			if e.Err.Error() != c.text || !strings.Contains(e.Hint, c.hint) || c.hint == "" && e.Hint != "" {
				t.Errorf("it says %q and hints %q, want %q and %q", e.Err, e.Hint, c.text, c.hint)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("it shows the signature: %v", err)
			}
		})
	}
}

// TestRefusedWrites has the answers after which the row is read again. A blob
// may be deleted between the read and the write.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]int{"BlobAlreadyExists": 409, "ConditionNotMet": 412, "BlobNotFound": 404} {
		if _, err := objectsOver(t, azuretest.Answering(status, code, said("No.")), nil).Put(t.Context(), "k", []byte("x"), `"0x8D"`); !errors.Is(err, objectstore.ErrChanged) {
			t.Errorf("%d %s: %v, want ErrChanged", status, code, err)
		}
	}
}

// TestReadErrors has what only a read can meet.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	f := azuretest.NewFake()
	o := azblobstore.NewObjects(f.Container(), "")
	expect.Value(o.Put(t.Context(), "k", []byte("0123456789"), ""))(t)
	var e *driver.Error
	f.Plan.Plan(http.MethodGet, fault.Truncate)
	if _, err := o.Get(t.Context(), "k"); !errors.As(err, &e) || e.Lasting || e.Answered || e.Unapplied {
		t.Errorf("an answer that breaks off: %v", err)
	}
	f.Plan.Plan(http.MethodGet, fault.Deny)
	if _, err := o.Get(t.Context(), "k"); !errors.As(err, &e) || !strings.HasSuffix(e.Action, "/blobs/read") {
		t.Errorf("a denied read: %v", err)
	}
	if got, err := objectsOver(t, azuretest.Answering(200, "", "x"), nil).Get(t.Context(), "k"); err != nil || got.Version != "" || !got.Now.IsZero() || !got.Modified.IsZero() {
		t.Errorf("an answer without a version or a date: %+v, %v", got, err)
	}
	// A proxy's 404 does not say that there is no blob.
	if _, err := objectsOver(t, azuretest.Answering(404, "", "<html>"), nil).Get(t.Context(), "k"); errors.Is(err, objectstore.ErrNotExist) || !errors.As(err, &e) {
		t.Errorf("a proxy's 404: %v", err)
	}
}

// TestOneRequest shows that the SDK's own retries are off: a repeated write
// would meet its own first copy.
func TestOneRequest(t *testing.T) {
	t.Parallel()
	for _, meets := range []fault.Fault{fault.DropBefore, fault.ApplyThenDrop, fault.Truncate, fault.Throttle, fault.Fail} {
		synctest.Test(t, func(t *testing.T) {
			f := azuretest.NewFake()
			f.Plan.Always(http.MethodPut, meets)
			f.Plan.Always(http.MethodGet, meets)
			o := azblobstore.NewObjects(f.Container(), "")
			_, putErr := o.Put(t.Context(), "k", nil, "")
			_, getErr := o.Get(t.Context(), "k")
			if puts, gets := f.Plan.Requests(http.MethodPut), f.Plan.Requests(http.MethodGet); puts != 1 || gets != 1 || putErr == nil || getErr == nil {
				t.Errorf("%v: %d writes and %d reads, errors %v and %v", meets, puts, gets, putErr, getErr)
			}
		})
	}
}

// TestPatientList: nothing is lost by repeating a list.
func TestPatientList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := azuretest.NewFake()
		o := azblobstore.NewObjects(f.Container(), "")
		expect.Value(o.Put(t.Context(), "k", nil, ""))(t)
		f.Plan.Plan(http.MethodGet, fault.DropBefore, fault.Throttle, fault.Fail)
		var got []string
		for key, err := range o.Keys(t.Context()) {
			expect.OK(t, err)
			got = append(got, key)
		}
		if !slices.Equal(got, []string{"k"}) {
			t.Errorf("got %q", got)
		}
		f.Plan.Always(http.MethodGet, fault.Throttle)
		for _, err := range o.Keys(t.Context()) {
			if e := (*driver.Error)(nil); !errors.As(err, &e) || !e.Answered || e.Lasting {
				t.Errorf("always throttled: %v", err)
			}
		}
	})
}

func TestNoAnswerInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := azuretest.NewFake()
		o := azblobstore.NewObjects(f.Container(), "")
		f.Plan.Plan(http.MethodPut, fault.Hang, fault.ApplyThenHang)
		for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if errors.Is(end, context.Canceled) {
				time.AfterFunc(time.Second/2, cancel)
			}
			_, err := o.Put(ctx, "k", nil, "")
			cancel()
			var e *driver.Error
			if !errors.As(err, &e) || e.Lasting || e.Answered || e.Unapplied || !errors.Is(err, end) || (e.Hint == "") != errors.Is(end, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
	})
}

type noToken struct{ err error }

func (n noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, n.err
}

// refusedToken is an error of azidentity: it keeps the answer, if there was
// one, but not the error that it was made from.
type refusedToken struct{ RawResponse *http.Response }

func (*refusedToken) Error() string { return "authentication failed" }
func (*refusedToken) NonRetriable() {}

// embedded is an error of a program's own credential.
type embedded struct{ *refusedToken }

// TestNoToken: nothing was sent. If the identity is wrong, a handler must not
// run without a lock because of it. If the token service is out of reach, the
// request is repeated.
func TestNoToken(t *testing.T) {
	t.Parallel()
	answer := func(status int) *refusedToken { return &refusedToken{&http.Response{StatusCode: status}} }
	for name, c := range map[string]struct {
		err   error
		lasts bool
	}{
		"no identity":       {errors.New("no managed identity found"), true},
		"wrong request":     {answer(400), true},
		"wrong secret":      {answer(401), true},
		"forbidden":         {fmt.Errorf("in a chain: %w", answer(403)), true},
		"overloaded":        {answer(429), false},
		"too late":          {answer(408), false},
		"broken":            {fmt.Errorf("in a chain: %w", answer(503)), false},
		"no reason":         {&refusedToken{}, true}, // a callback of the identity failed, for example
		"one overloaded":    {errors.Join(answer(401), fmt.Errorf("%w, after %w", io.ErrUnexpectedEOF, answer(503))), false},
		"all refused":       {errors.Join(answer(401), answer(403)), true},
		"embedded":          {embedded{answer(503)}, false},
		"embeds nothing":    {embedded{}, true},
		"no answer in time": {fmt.Errorf("get token: %w", context.DeadlineExceeded), false},
		"no connection":     {fmt.Errorf("get token: %w", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}), false},
	} {
		_, err := objectsOver(t, failing(errors.New("sent")), noToken{c.err}).Put(t.Context(), "k", nil, "")
		var e *driver.Error
		if !errors.As(err, &e) || e.Lasting != c.lasts || e.Answered || !e.Unapplied || !strings.Contains(err.Error(), c.err.Error()) || !strings.Contains(e.Hint, "identity") {
			t.Errorf("%s: got %v, lasting: %v", name, err, e.Lasting)
		}
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"":       "lambdalock: Azure container https://fake.blob.core.windows.net/c: 503 ServerBusy: The server is busy.",
		"locks":  "lambdalock: Azure container https://fake.blob.core.windows.net/c, prefix locks/: 503 ServerBusy: The server is busy.",
		"locks/": "lambdalock: Azure container https://fake.blob.core.windows.net/c, prefix locks/: 503 ServerBusy: The server is busy.",
	} {
		f := azuretest.NewFake()
		f.Plan.Plan(http.MethodGet, fault.Throttle)
		if err := azblobstore.New(f.Container(), prefix).Check(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
