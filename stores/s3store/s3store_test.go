package s3store_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/objectstore"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

func TestConformance(t *testing.T) {
	server, client := newServer(t)
	locktest.Run(t, locktest.Harness{
		Open:      func(*testing.T) driver.Store { return s3store.New(client, bucket, "rows") },
		Advance:   server.advance,
		MakeNewer: func(t *testing.T, _ driver.Store, name string) { makeNewer(t, client, name) },
	})
}

// makeNewer puts a field into the row that only a later format has.
func makeNewer(t *testing.T, client *s3.Client, name string) {
	t.Helper()
	key := aws.String("rows/" + objectstore.Key(name))
	out := expect.Value(client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: key}))(t)
	body := expect.Value(io.ReadAll(out.Body))(t)
	newer := strings.Replace(string(body), "{", `{"rowFormat": 2,`, 1)
	expect.Value(client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: key, Body: strings.NewReader(newer)}))(t)
}

func claimAt(now time.Time, name, token string) *driver.Claim {
	return &driver.Claim{
		Name: name, Token: token, Holder: token, Now: now, Stamp: now,
		Until: now.Add(15 * time.Second), DeleteAfter: now.Add(24 * time.Hour),
	}
}

func settlement(c *driver.Claim) *driver.Settlement {
	return &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter}
}

// TestRace: of 32 writers of a row, each with a client of its own, one wins:
// where there is no row, a free one, and one of a dead holder.
func TestRace(t *testing.T) {
	t.Parallel()
	const writers = 32
	server, client := newServer(t)
	first, stores := s3store.New(client, bucket, ""), [writers]*objectstore.Store{}
	for i := range stores {
		stores[i] = s3store.New(server.client(), bucket, "")
	}
	for round := range 8 {
		for _, state := range []string{"absent", "free", "dead holder"} {
			name := fmt.Sprint(state, round)
			now := server.Now()
			if state != "absent" {
				c := claimAt(now, name, "first")
				expect.Granted(first.Acquire(t.Context(), c))(t)
				if state == "free" {
					expect.Granted(first.Settle(t.Context(), settlement(c)))(t)
				}
			}
			server.advance(time.Minute)
			now = server.Now()
			var wg sync.WaitGroup
			var granted atomic.Int32
			for i := range writers {
				wg.Go(func() {
					_, ok, err := stores[i].Acquire(t.Context(), claimAt(now.Add(time.Duration(i)), name, fmt.Sprint("writer ", i)))
					var e *driver.Error
					if err != nil && !(errors.As(err, &e) && e.Conflict) {
						t.Error(err)
					}
					if ok {
						granted.Add(1)
					}
				})
			}
			wg.Wait()
			if n := granted.Load(); n != 1 {
				t.Errorf("round %d, %s: %d of %d were granted", round, state, n, writers)
			}
		}
	}
}

// TestContention: every one of many workers gets the lock in turn.
func TestContention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		var mu sync.Mutex
		var holds []locktest.Hold
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				locker, err := lock.New(s3store.New(server.client(), bucket, "locks/"), &lock.Options{MaxWait: time.Minute, Logger: discard})
				if err != nil {
					t.Error(err)
					return
				}
				for range 5 {
					l, err := locker.Acquire(t.Context(), lock.Key{Name: "n"})
					if err != nil {
						t.Error(err)
						return
					}
					hold := locktest.Hold{Name: "n", Holder: fmt.Sprint(i), Fence: l.Lease().Fence, Start: time.Now()}
					time.Sleep(time.Millisecond)
					hold.End = time.Now()
					expect.OK(t, l.Release())
					mu.Lock()
					holds = append(holds, hold)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if err := locktest.CheckHistory(holds); err != nil || len(holds) != 40 {
			t.Errorf("%d holds, %v", len(holds), err)
		}
	})
}

// TestRequests shows each request of a cycle, and which objects there are.
func TestRequests(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	store := s3store.New(client, bucket, "a b/c")
	now := server.Now()
	cycle := func(store *objectstore.Store, name string) {
		t.Helper()
		now = now.Add(time.Millisecond)
		c := claimAt(now, name, name+" token")
		if row, ok, err := store.Acquire(t.Context(), c); !ok || err != nil {
			t.Fatal(row, ok, err)
		}
		if row, ok, err := store.Settle(t.Context(), settlement(c)); !ok || err != nil {
			t.Fatal(row, ok, err)
		}
	}
	cycle(store, "first") // checks the server
	cycle(store, "second")
	other := s3store.New(client, bucket, "a b/c/")
	server.requests()
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"fresh", func() { cycle(store, "x/y") }, []string{"PUT /x%252Fy if absent", "PUT /x%252Fy if unchanged"}},
		{"cached", func() { cycle(store, "x/y") }, []string{"PUT /x%252Fy if unchanged", "PUT /x%252Fy if unchanged"}},
		{"another process", func() { cycle(other, "x/y") }, []string{
			"40 for /~probe-", "PUT /x%252Fy if absent", "GET /x%252Fy", "PUT /x%252Fy if unchanged", "PUT /x%252Fy if unchanged",
		}},
		{"known", func() { cycle(other, "second") }, []string{"GET /second", "PUT /second if unchanged", "PUT /second if unchanged"}},
		{"check", func() {
			expect.OK(t, store.Check(t.Context()))
		}, []string{"GET /~none"}},
	} {
		step.do()
		var got []string
		probes := 0
		for _, r := range server.requests() {
			if r = strings.Replace(r, "/"+bucket+"/a%20b/c", "", 1); strings.Contains(r, "/~probe-") {
				probes++
			} else {
				got = append(got, r)
			}
		}
		if probes > 0 {
			got = append([]string{fmt.Sprint(probes, " for /~probe-")}, got...)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: made the requests\n%q, want\n%q", step.name, got, step.want)
		}
	}
	cycle(s3store.New(client, bucket, ""), "outside")
	server.requests()
	var names []string
	for row, err := range store.Rows(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, row.Name)
	}
	slices.Sort(names)
	if want := []string{"first", "second", "x/y"}; !slices.Equal(names, want) {
		t.Errorf("the rows are %q, want %q", names, want)
	}
	if got := server.requests(); len(got) != 4 {
		t.Errorf("made the requests %q, want a list and three reads", got)
	}
}

// TestRowsOfManyPages lists more rows than one answer has.
func TestRowsOfManyPages(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	store := s3store.New(client, bucket, "locks")
	for i := range 25 {
		expect.Granted(store.Acquire(t.Context(), claimAt(server.Now(), fmt.Sprint("n", i), "t")))(t)
	}
	server.fault = func(r *http.Request) *http.Response {
		if q := r.URL.Query(); q.Has("list-type") {
			q.Set("max-keys", "10")
			r.URL.RawQuery = q.Encode()
		}
		return nil
	}
	n := 0
	for _, err := range store.Rows(t.Context(), "n") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 25 {
		t.Errorf("%d rows, want 25", n)
	}
	for range store.Rows(t.Context(), "n") {
		break // the caller may stop
	}
}

// TestPatientList: a page that S3 throttles is asked for again, and so is the
// first one by a computer whose clock is wrong.
func TestPatientList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := newServer(t)
		store := s3store.New(client, bucket, "locks")
		for i := range 25 {
			expect.Granted(store.Acquire(t.Context(), claimAt(server.Now(), fmt.Sprint("n", i), "t")))(t)
		}
		server.advance(3 * time.Hour)
		pages := 0
		server.fault = func(r *http.Request) *http.Response {
			if a := server.wrongClock(t, r); a != nil {
				return a
			}
			q := r.URL.Query()
			if !q.Has("list-type") {
				return nil
			}
			if pages++; pages == 2 {
				return answers(503, "SlowDown", "Please reduce your request rate.")
			}
			q.Set("max-keys", "10")
			r.URL.RawQuery = q.Encode()
			return nil
		}
		store = s3store.New(server.client(func(o *s3.Options) { o.BaseEndpoint = nil }), bucket, "locks")
		n := 0
		for _, err := range store.Rows(t.Context(), "n") {
			expect.OK(t, err)
			n++
		}
		if n != 25 || pages != 4 {
			t.Errorf("%d rows on %d pages, want 25 on 3, one of them twice", n, pages)
		}
	})
}

// TestHeaders: no other server is asked for what only S3 may know.
func TestHeaders(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	var mu sync.Mutex // the probe sends several requests at the same time
	var seen []http.Header
	server.fault = func(r *http.Request) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Clone())
		return nil
	}
	store := s3store.New(client, bucket, "")
	c := claimAt(server.Now(), "n", "t")
	expect.Granted(store.Acquire(t.Context(), c))(t)
	expect.Value(store.Read(t.Context(), "n"))(t)
	for _, h := range seen {
		for name := range h {
			lower := strings.ToLower(name)
			if strings.Contains(lower, "checksum") || strings.Contains(lower, "trailer") || lower == "expect" || strings.Contains(h.Get(name), "aws-chunked") {
				t.Errorf("the header %s: %s", name, h.Get(name))
			}
		}
	}
	if got := seen[len(seen)-2].Get("Content-Type"); got != "application/json" {
		t.Errorf("the object has the type %q", got)
	}
}

// TestChecksumForS3: S3 refuses a write without a checksum to a bucket that
// retains its objects by default (Object Lock).
func TestChecksumForS3(t *testing.T) {
	t.Parallel()
	for name, endpoint := range map[string]*string{"default": nil, "VPC endpoint": aws.String("https://bucket.vpce-1a2b3c4d-5e6f.s3.us-east-1.vpce.amazonaws.com")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := newServer(t)
			var mu sync.Mutex
			var sum string
			server.fault = func(r *http.Request) *http.Response {
				mu.Lock()
				defer mu.Unlock()
				sum = r.Header.Get("X-Amz-Trailer") + r.Header.Get("X-Amz-Checksum-Crc32")
				return nil
			}
			client := server.client(func(o *s3.Options) {
				o.BaseEndpoint, o.RequestChecksumCalculation = endpoint, aws.RequestChecksumCalculationUnset
			})
			expect.Granted(s3store.New(client, bucket, "").Acquire(t.Context(), claimAt(server.Now(), "n", "t")))(t)
			if sum == "" {
				t.Error("the write had no checksum")
			}
		})
	}
}

// TestTimesOfTheService: a lease is judged by Date and Last-Modified, whatever
// the clock of this machine.
func TestTimesOfTheService(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"same": 0, "ahead": 4 * time.Hour, "behind": -4 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, client := newServer(t)
				server.advance(offset)
				store, other := s3store.New(client, bucket, ""), s3store.New(client, bucket, "")
				now := time.Now()
				expect.Granted(store.Acquire(t.Context(), claimAt(now, "n", "a")))(t)
				for _, step := range []struct {
					pass time.Duration
					want bool
				}{{13 * time.Second, false}, {4 * time.Second, true}} {
					server.advance(step.pass)
					now = now.Add(time.Millisecond)
					if row, ok, err := other.Acquire(t.Context(), claimAt(now, "n", "b")); ok != step.want || err != nil {
						t.Errorf("granted %v, error %v, row %+v", ok, err, row)
					}
				}
			})
		})
	}
	t.Run("no Date", func(t *testing.T) {
		t.Parallel()
		server, client := newServer(t)
		store := s3store.New(client, bucket, "")
		expect.Granted(store.Acquire(t.Context(), claimAt(time.Now(), "n", "a")))(t)
		server.noDate = true
		_, ok, err := s3store.New(client, bucket, "").Acquire(t.Context(), claimAt(time.Now(), "n", "b"))
		var e *driver.Error
		if ok || !errors.As(err, &e) || !e.Lasting || !e.Answered || !e.Unapplied {
			t.Errorf("granted %v, error %v", ok, err)
		}
	})
}
