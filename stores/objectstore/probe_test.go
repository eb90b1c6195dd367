package objectstore_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	f := newFake()
	for i, want := range [][]string{
		{"put ~probe", "put ~probe", "get ~probe", "put ~probe", "get ~probe", "put ~probe"},
		{"put ~probe", "get ~probe", "put ~probe", "get ~probe", "put ~probe"}, // the object is there already
	} {
		if err := objectstore.Probe(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if got := f.requests(); !slices.Equal(got, want) {
			t.Errorf("probe %d made the requests %q, want %q", i, got, want)
		}
	}
}

// TestProbeFindsIgnoredConditions plants a service that ignores one condition
// or both, as some servers do.
func TestProbeFindsIgnoredConditions(t *testing.T) { // F52
	t.Parallel()
	for name, c := range map[string]struct {
		ignores []string // versions, "" for the condition of absence
		exists  bool
		want    string
	}{
		"both":                  {[]string{"", "etag"}, false, "If-None-Match"},
		"absence":               {[]string{""}, false, "If-None-Match"},
		"absence, object there": {[]string{""}, true, "If-None-Match"},
		"version":               {[]string{"etag"}, false, "If-Match"},
		"version, object there": {[]string{"etag"}, true, "If-Match"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			if c.exists {
				if _, ok := f.apply("~probe", []byte("{}"), ""); !ok {
					t.Fatal("not written")
				}
			}
			f.ignores = func(version string) bool {
				return version == "" && slices.Contains(c.ignores, "") || version != "" && slices.Contains(c.ignores, "etag")
			}
			err := objectstore.Probe(t.Context(), f)
			var setting *driver.ConfigError
			if !errors.As(err, &setting) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "fake bucket") || !strings.Contains(err.Error(), "use ") {
				t.Errorf("got %v, want a *ConfigError that names the service, %s, and what to do", err, c.want)
			}
		})
	}
}

// TestProbeErrors lets each request of a probe fail.
func TestProbeErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault fault
		want  func(request int, err error) bool
	}{
		"no answer": {noRequest, func(_ int, err error) bool { return errors.Is(err, errNoAnswer) }},
		"conflict once": {conflict, func(request int, err error) bool {
			return err == nil || (request == 2 || request == 4) && errors.Is(err, objectstore.ErrChanged) // a read has no condition
		}},
		"refused for another reason": {broken, func(_ int, err error) bool { // by a proxy, for example
			var setting *driver.ConfigError
			return err != nil && !errors.As(err, &setting)
		}},
		"denied": {denied, func(_ int, err error) bool {
			var e *driver.Error
			var setting *driver.ConfigError
			return errors.As(err, &e) && e.Action == "s3:PutObject" && !errors.As(err, &setting)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for request := range 6 {
				f := newFake()
				n := 0
				f.fault = func(string) fault {
					n++
					if n == request+1 {
						return c.fault
					}
					return none
				}
				if err := objectstore.Probe(t.Context(), f); !c.want(request, err) {
					t.Errorf("request %d failed: got %v", request, err)
				}
			}
		})
	}
	t.Run("conflict each time", func(t *testing.T) {
		t.Parallel()
		f := newFake()
		f.fault = func(method string) fault {
			if method == "put" {
				return conflict
			}
			return none
		}
		var e *driver.Error
		if err := objectstore.Probe(t.Context(), f); !errors.As(err, &e) || !e.Conflict || !e.Temporary || !e.Rejected {
			t.Errorf("got %v, want a conflict", err)
		}
	})
}

// TestProbeFindsTwoClocks: a proxy tells its own time instead of the service's.
func TestProbeFindsTwoClocks(t *testing.T) { // F14
	t.Parallel()
	for ahead, want := range map[time.Duration]bool{0: true, time.Second: true, -4 * time.Second: true, 4 * time.Second: false, -12 * time.Second: false, 5 * time.Hour: false} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.before = func(string) { time.Sleep(100 * time.Millisecond) }
				f.tells = func(o *objectstore.Object) { o.Now = o.Now.Add(ahead) }
				for range 2 { // the second finds an object that is a day old
					err := objectstore.Probe(t.Context(), f)
					var setting *driver.ConfigError
					if (err == nil) != want || !want && (!errors.As(err, &setting) || !strings.Contains(err.Error(), "two clocks")) {
						t.Errorf("got %v", err)
					}
					time.Sleep(24 * time.Hour)
				}
			})
		})
	}
}

func TestProbesAtOnce(t *testing.T) {
	t.Parallel()
	f := newFake()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var e *driver.Error
			if err := objectstore.Probe(t.Context(), f); err != nil && !(errors.As(err, &e) && e.Conflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
