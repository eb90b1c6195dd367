package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// pagedTable is a table of several pages.
type pagedTable struct {
	*dynamostore.Store
	scans atomic.Int32
	// scan is called before each page but the first. False denies it.
	scan func() bool
}

const manyLocks = 2000

func newPagedTable(t *testing.T) *pagedTable {
	t.Helper()
	p := &pagedTable{scan: func() bool { return true }}
	table := fakedynamo.New()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Scan") && p.scans.Add(1) > 1 && !p.scan() {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"AccessDeniedException","Message":"User: somebody is not authorized to perform: dynamodb:Scan on resource: it"}`)
			return
		}
		table.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", BaseEndpoint: aws.String(s.URL), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
	expect.Must(t, dynamostore.EnsureTable(t.Context(), client, "locks"))
	p.Store = dynamostore.New(client, "locks")
	now := time.Now().Round(0)
	for i := range manyLocks {
		_, ok, err := p.Acquire(t.Context(), &driver.Claim{
			Name: fmt.Sprint("orders/", i), Token: fmt.Sprint("t", i), Holder: strings.Repeat("h", 1500), Stamp: now, Now: now, Until: now.Add(time.Hour), DeleteAfter: now.Add(2 * time.Hour),
		})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	return p
}

// TestListOfPages: what is printed is what was read, also if it ends in the
// middle.
func TestListOfPages(t *testing.T) {
	t.Parallel()
	p := newPagedTable(t)
	list := func(ctx context.Context) (rows int, summary string, err error) {
		var out, notes strings.Builder
		p.scans.Store(0)
		err = (&List{StoreFlags: console.StoreFlags{Namespace: "orders"}}).print(ctx, p.Store, &out, &notes)
		return strings.Count(out.String(), "\nheld "), notes.String(), err
	}
	rows, summary, err := list(t.Context())
	if err != nil || rows != manyLocks || !strings.Contains(summary, fmt.Sprint(manyLocks, " held, 0 expired")) || p.scans.Load() < 3 {
		t.Errorf("%d rows of %d pages, %q, %v", rows, p.scans.Load(), summary, err)
	}
	p.scan = func() bool { return false }
	rows, summary, err = list(t.Context())
	if status(trouble(err)) != 69 || rows == 0 || rows == manyLocks || summary != "" {
		t.Errorf("denied: %d rows, %q, %v", rows, summary, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p.scan = func() bool { stop(); return true }
	rows, summary, err = list(ctx)
	if !errors.Is(err, context.Canceled) || rows == 0 || rows == manyLocks || summary != "" {
		t.Errorf("interrupted: %d rows, %q, %v", rows, summary, err)
	}
}
