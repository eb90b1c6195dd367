package s3store_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// ignoreConditions makes a server that writes whatever the condition.
func ignoreConditions(r *http.Request) *http.Response {
	r.Header.Del("If-Match")
	r.Header.Del("If-None-Match")
	return nil
}

// TestServerThatIgnoresConditions: not even the first claim is granted, and
// nothing is written under its name.
func TestServerThatIgnoresConditions(t *testing.T) { // F52
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(*http.Request) *http.Response
		want  string
	}{
		"ignores both":          {ignoreConditions, "does not check the condition that an object does not exist"},
		"ignores If-Match":      {func(r *http.Request) *http.Response { r.Header.Del("If-Match"); return nil }, "has not changed (If-Match)"},
		"ignores If-None-Match": {func(r *http.Request) *http.Response { r.Header.Del("If-None-Match"); return nil }, "does not exist (If-None-Match: *)"},
		"does not know them": {func(r *http.Request) *http.Response {
			if r.Method == http.MethodPut {
				return answers(501, "NotImplemented", "A header you provided implies functionality that is not implemented")
			}
			return nil
		}, "use a service or version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, client := newServer(t)
			server.fault = c.fault
			store := s3store.New(client, bucket, "locks")
			for range 2 { // it does not wear off
				_, ok, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a"))
				if ok || err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("granted %v, error %v, want %q", ok, err, c.want)
				}
			}
			for _, r := range server.requests() {
				if !strings.Contains(r, "~probe") {
					t.Errorf("sent %s", r)
				}
			}
		})
	}
}

// checkThenWrite makes a server that checks a condition, and writes whatever is
// there by then.
func checkThenWrite(s *server, gap time.Duration) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response {
		if condition(r.Header) == "" {
			return nil
		}
		look := r.Clone(r.Context())
		look.Method, look.Body, look.ContentLength = http.MethodGet, http.NoBody, 0
		now, err := fault.InProcess{Handler: s.handler}.RoundTrip(look)
		if err != nil || (now.StatusCode == http.StatusOK) == (r.Header.Get("If-None-Match") != "") || now.Header.Get("ETag") != r.Header.Get("If-Match") {
			return answers(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
		}
		time.Sleep(gap)
		return ignoreConditions(r)
	}
}

// TestServerThatChecksThenWrites: such a server passes every check by one
// client at a time.
func TestServerThatChecksThenWrites(t *testing.T) { // F59
	t.Parallel()
	for _, gap := range []time.Duration{200 * time.Microsecond, 5 * time.Millisecond} {
		t.Run(gap.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, client := newServer(t)
				server.fault = checkThenWrite(server, gap)
				store := s3store.New(client, bucket, "locks")
				_, ok, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a"))
				if ok || !errors.As(err, new(*driver.ConfigError)) || !strings.Contains(err.Error(), "not in one step with the write") {
					t.Errorf("granted %v, error %v", ok, err)
				}
			})
		})
	}
}

// TestSlowServer: a server that answers slowly is usable by events that have
// three seconds, of which a claim may take a tenth: immediately if the store
// was checked during INIT, and otherwise after some events.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		request time.Duration
		init    bool
		within  int // the first event that succeeds, at the latest
	}{
		{50 * time.Millisecond, true, 1},
		{50 * time.Millisecond, false, 2},
		{200 * time.Millisecond, true, 1},
		{200 * time.Millisecond, false, 4},
	} {
		t.Run(fmt.Sprint(c.request, ", INIT ", c.init), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, client := newServer(t)
				server.fault = func(*http.Request) *http.Response { time.Sleep(c.request); return nil }
				store := s3store.New(client, bucket, "locks")
				locker := expect.Value(lock.New(store, &lock.Options{Logger: discard}))(t)
				if c.init {
					expect.Must(t, locker.Check(t.Context()))
				}
				event := 0
				for succeeded := false; !succeeded && event < 10; {
					event++
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					l, err := locker.Acquire(ctx, lock.Key{Name: fmt.Sprint("n", event)})
					if succeeded = err == nil; succeeded {
						err = l.Release()
					}
					var e *lock.StoreError
					if err != nil && (succeeded || !errors.As(err, &e) || !e.Temporary) {
						t.Error(err)
					}
					cancel()
				}
				if event > c.within {
					t.Errorf("event %d was the first that succeeded, want %d", event, c.within)
				}
			})
		})
	}
}

// TestProbeOnce: many claims at the same time check the server once, and again
// after an error that says nothing about conditions. A claim does not wait for
// another's check longer than its own context lasts.
func TestProbeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := newServer(t)
		store := s3store.New(client, bucket, "locks")
		server.fault = func(*http.Request) *http.Response { return answers(503, "SlowDown", "Reduce your request rate.") }
		var e *driver.Error
		if _, _, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a")); !errors.As(err, &e) || e.Lasting {
			t.Errorf("got %v, want a temporary error", err)
		}
		server.requests()
		answer := make(chan struct{})
		server.fault = func(*http.Request) *http.Response { <-answer; return nil }
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				if _, ok, err := store.Acquire(t.Context(), claimAt(time.Now(), string(rune('a'+i)), "a")); !ok || err != nil {
					t.Error(ok, err)
				}
			})
			synctest.Wait() // the first checks, the others wait for it
		}
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan struct{}, 1)
		wg.Go(func() {
			_, ok, err := store.Acquire(ctx, claimAt(time.Now(), "m", "b"))
			gaveUp <- struct{}{}
			if ok || !errors.Is(err, context.Canceled) {
				t.Errorf("granted %v, error %v", ok, err)
			}
			checkStore(t, err)
		})
		synctest.Wait()
		if got := server.requests(); len(got) != 4 {
			t.Errorf("sent %q, want the writes of one race", got)
		}
		cancel()
		synctest.Wait()
		if len(gaveUp) == 0 {
			t.Error("a claim whose context has ended still waits")
		}
		close(answer)
		wg.Wait()
		probes := 4
		for _, r := range server.requests() {
			if strings.Contains(r, "~probe") {
				probes++
			}
		}
		if probes != 40 {
			t.Errorf("%d requests checked the server, want 40", probes)
		}
	})
}

func checkStore(t *testing.T, err error) {
	t.Helper()
	var e *driver.Error
	if !errors.As(err, &e) || e.Store != "S3 bucket locks, prefix locks/" {
		t.Errorf("the error %v does not name the bucket", err)
	}
}

// TestAccessPoints: those that have no conditional writes, or have several
// buckets, are refused before anything is written. Others are checked.
func TestAccessPoints(t *testing.T) { // F52
	t.Parallel()
	const (
		fsx  = "belongs to a volume of Amazon FSx"
		mrap = "is a Multi-Region Access Point"
	)
	for name, c := range map[string]struct{ bucket, endpoint, want string }{
		"alias of FSx":             {"p-hrzrlukc5m36ft7okagglf3gmwluquse1b-ext-s3alias", "", fsx},
		"alias of FSx in the host": {bucket, "https://p-hrzrlukc5m36ft7okagglf3gmwluquse1b-ext-s3alias.s3.us-east-1.amazonaws.com", fsx},
		"Multi-Region":             {"arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap", "", mrap},
		"Multi-Region in the host": {bucket, "https://mfzwi23gnjvgw.mrap.accesspoint.s3-global.amazonaws.com", mrap},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := newServer(t)
			store := s3store.New(server.client(func(o *s3.Options) {
				if o.BaseEndpoint = nil; c.endpoint != "" {
					o.BaseEndpoint = &c.endpoint
				}
			}), c.bucket, "")
			_, ok, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a"))
			for step, err := range map[string]error{"acquire": err, "check": store.Check(t.Context())} {
				var e *driver.ConfigError
				if ok || !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "pass the name of a bucket") {
					t.Errorf("%s: granted %v, error %v", step, ok, err)
				}
			}
			for _, r := range server.requests() {
				if !strings.HasPrefix(r, "GET ") {
					t.Errorf("sent %s", r)
				}
			}
		})
	}
	for name, c := range map[string]struct{ bucket, endpoint string }{
		"alias":              {"p-hrzrlukc5m36ft7okagglf3gmwluquse1b-s3alias", ""},
		"ARN":                {"arn:aws:s3:us-east-1:123456789012:accesspoint/p", ""},
		"ARN, VPC endpoint":  {"arn:aws:s3:us-east-1:123456789012:accesspoint/p", "https://accesspoint.vpce-1a2b3c4d-5e6f.s3.us-east-1.vpce.amazonaws.com"},
		"ARN, S3's endpoint": {"arn:aws:s3:us-east-1:123456789012:accesspoint/p", "https://s3.us-east-1.amazonaws.com"},
		"ARN, GovCloud":      {"arn:aws-us-gov:s3:us-gov-west-1:123456789012:accesspoint/p", "https://s3.us-gov-west-1.amazonaws.com"},
	} {
		t.Run(name+" as the bucket", func(t *testing.T) {
			t.Parallel()
			server, _ := newServer(t)
			server.fault = func(r *http.Request) *http.Response {
				r.URL.Path = "/" + bucket + r.URL.Path // the host names the access point
				return ignoreConditions(r)
			}
			store := s3store.New(server.client(func(o *s3.Options) {
				o.Region, o.UsePathStyle = "us-east-1", false
				if strings.Contains(c.bucket, "gov") { // the SDK refuses the ARN of another partition
					o.Region = "us-gov-west-1"
				}
				if o.BaseEndpoint = nil; c.endpoint != "" {
					o.BaseEndpoint = &c.endpoint
				}
			}), c.bucket, "")
			if _, ok, err := store.Acquire(t.Context(), claimAt(time.Now(), "n", "a")); ok || !errors.As(err, new(*driver.ConfigError)) || !strings.Contains(err.Error(), "If-None-Match") {
				t.Errorf("granted %v, error %v", ok, err)
			}
		})
	}
}

// TestEndpoints: AWS's own endpoints are not checked, all others are.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	endpoint := func(url string) func(*s3.Options) {
		return func(o *s3.Options) { o.BaseEndpoint = &url }
	}
	own := func(o *s3.Options) { o.BaseEndpoint = nil }
	region := func(name string) func(*s3.Options) {
		return func(o *s3.Options) { o.BaseEndpoint, o.Region = nil, name }
	}
	dual := func(o *s3.Options) {
		o.BaseEndpoint, o.EndpointOptions.UseDualStackEndpoint = nil, aws.DualStackEndpointStateEnabled
	}
	for name, c := range map[string]struct {
		option func(*s3.Options)
		probed bool
	}{
		"default":            {own, false},
		"China":              {region("cn-north-1"), false},
		"European sovereign": {region("eusc-de-east-1"), false},
		"dual stack":         {dual, false},
		"VPC endpoint":       {endpoint("https://bucket.vpce-1a2b3c4d-5e6f.s3.us-east-1.vpce.amazonaws.com"), false},
		"with a port":        {endpoint("https://s3.us-east-1.amazonaws.com:443"), false},
		"no Region":          {endpoint("https://s3.amazonaws.com"), false},
		"FIPS":               {endpoint("https://s3-fips.dualstack.us-east-1.amazonaws.com"), false},
		"acceleration":       {endpoint("https://b.s3-accelerate.amazonaws.com"), false},
		"access point":       {endpoint("https://p-123456789012.s3-accesspoint.us-east-1.amazonaws.com"), true},
		"FIPS access point":  {endpoint("https://p-123456789012.s3-accesspoint-fips.us-east-1.amazonaws.com"), true},
		"alias of a point":   {endpoint("https://p-hrzrlukc5m36ft7okagglf3gmwluquse1b-s3alias.s3.us-east-1.amazonaws.com"), true},
		"Object Lambda":      {endpoint("https://p-hrzrlukc5m36ft7okagglf3gmwluquse1b--ol-s3.s3.us-east-1.amazonaws.com"), true},
		"directory bucket":   {endpoint("https://b--usw2-az1--x-s3.s3express-usw2-az1.us-west-2.amazonaws.com"), false},
		"Outposts":           {endpoint("https://p-1.op-0.s3-outposts.us-east-1.amazonaws.com"), true},
		"server on EC2":      {endpoint("http://ec2-203-0-113-25.compute-1.amazonaws.com:9000"), true},
		"load balancer":      {endpoint("https://s3-1234567890.us-east-1.elb.amazonaws.com"), true},
		"behind API Gateway": {endpoint("https://a1b2c3.execute-api.us-east-1.amazonaws.com"), true},
		"local":              {endpoint("http://127.0.0.1:9000"), true},
		"another provider":   {endpoint("https://s3.example.com"), true},
		"looks like AWS's":   {endpoint("https://s3.amazonaws.com.example.com"), true},
		"ends like AWS's":    {endpoint("https://notamazonaws.com"), true},
		"IPv6":               {endpoint("http://[::1]:9000"), true},
		"resolver of the user's own": {func(o *s3.Options) {
			o.BaseEndpoint = nil
			o.EndpointResolver = s3.EndpointResolverFromURL("https://storage.example.com") //nolint:staticcheck // some clients still have one
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := newServer(t)
			checked := s3store.New(server.client(c.option), bucket, "")
			expect.Must(t, checked.Check(t.Context()))
			if n := len(server.requests()); n != 1 && !c.probed || n != 41 && c.probed {
				t.Errorf("Check sent %d requests", n)
			}
			expect.Granted(checked.Acquire(t.Context(), claimAt(time.Now(), "n", "a")))(t)
			if got := server.requests(); len(got) != 1 {
				t.Errorf("after Check an acquire sent %q", got)
			}
			store := s3store.New(server.client(c.option), bucket, "")
			for i := range 2 {
				expect.Granted(store.Acquire(t.Context(), claimAt(time.Now(), string(rune('a'+i)), "a")))(t)
			}
			probed := slices.ContainsFunc(server.requests(), func(r string) bool { return strings.Contains(r, "~probe") })
			if probed != c.probed {
				t.Errorf("the server was checked: %v, want %v", probed, c.probed)
			}
		})
	}
}
