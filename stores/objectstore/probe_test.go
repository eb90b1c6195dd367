package objectstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// TestProbe: a probe takes five steps, each as long as a request, and leaves
// five objects that are not taken for rows.
func TestProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.before = func(string) { time.Sleep(time.Second) }
		began := time.Now()
		expect.Must(t, new(objectstore.Probe).Run(t.Context(), f))
		log := strings.Join(f.requests(), ", ")
		if puts, gets := strings.Count(log, "put ~probe-"), strings.Count(log, "get ~probe-"); puts != 36 || gets != 4 || len(f.objects) != 5 {
			t.Errorf("%d writes, %d reads, %d objects: %s", puts, gets, len(f.objects), log)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("took %v", took)
		}
		for row, err := range objectstore.New(f).Rows(t.Context(), "") {
			t.Errorf("row %+v, error %v", row, err)
		}
	})
}

// wantAccusation checks the error about a service that does not check a
// condition.
func wantAccusation(t *testing.T, err error, condition string) {
	t.Helper()
	var setting *driver.ConfigError
	if !errors.As(err, &setting) || !strings.Contains(err.Error(), condition) || !strings.Contains(err.Error(), "fake bucket") || !strings.Contains(err.Error(), "use ") {
		t.Errorf("got %v, want a *ConfigError that names the service, %s, and what to do", err, condition)
	}
}

var conditions = map[string]struct {
	of   func(version string) bool
	want string
}{
	"both":    {func(string) bool { return true }, "(If-None-Match: *)"},
	"absence": {func(version string) bool { return version == "" }, "does not exist (If-None-Match: *)"},
	"version": {func(version string) bool { return version != "" }, "has not changed (If-Match)"},
}

// TestProbeFindsIgnoredConditions plants a service that ignores one condition
// or both, as some servers do, always or for a single write: then it applies
// two of those that race.
func TestProbeFindsIgnoredConditions(t *testing.T) { // F52
	t.Parallel()
	for name, c := range conditions {
		for writes, most := range map[string]int{"always": 1000, "once": 1} {
			t.Run(name+", "+writes, func(t *testing.T) {
				t.Parallel()
				f, n := newFake(), 0
				f.ignores = func(version string) bool {
					if !c.of(version) {
						return false
					}
					n++
					return n <= most
				}
				wantAccusation(t, new(objectstore.Probe).Run(t.Context(), f), c.want)
			})
		}
	}
}

// TestProbeFindsCheckThenWrite plants a service that checks a condition and
// then writes, so that of several writes more than one may pass. Such are
// SeaweedFS before 4.18 and others.
func TestProbeFindsCheckThenWrite(t *testing.T) { // F59
	t.Parallel()
	for name, c := range conditions {
		for _, gap := range []time.Duration{time.Microsecond, 200 * time.Microsecond, 5 * time.Millisecond} {
			t.Run(fmt.Sprint(name, ", ", gap), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFake()
					f.checks, f.gap = c.of, gap
					wantAccusation(t, new(objectstore.Probe).Run(t.Context(), f), c.want)
				})
			})
		}
	}
}

// TestProbeOfSoundServices: no service that honours conditions is accused,
// whatever a proxy does in front of it.
func TestProbeOfSoundServices(t *testing.T) { // F52, F59
	t.Parallel()
	for name, plant := range map[string]func(*fake){
		"whole seconds":                  func(*fake) {},
		"exact times":                    func(f *fake) { f.exact = true },
		"a write tells no version":       func(f *fake) { f.anonymous = true },
		"a proxy sends each write twice": func(f *fake) { f.fault = func(string) fault { return twice } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			plant(f)
			expect.OK(t, new(objectstore.Probe).Run(t.Context(), f))
		})
	}
}

// TestProbeErrors lets each request of a probe fail. The probe then goes on.
func TestProbeErrors(t *testing.T) { // F59
	t.Parallel()
	for _, planned := range []fault{lostAnswer, noRequest, conflict, broken, denied, twice} {
		t.Run(fmt.Sprint(planned), func(t *testing.T) {
			t.Parallel()
			for request := range 40 {
				f := newFake()
				n := 0
				f.fault = func(method string) fault {
					if n++; n == request+1 && !(planned == conflict && method == "get") { // a read has no condition
						return planned
					}
					return none
				}
				p := new(objectstore.Probe)
				err := p.Run(t.Context(), f)
				var e *driver.Error
				if err != nil && (!errors.As(err, &e) || p.Passed()) {
					t.Errorf("request %d failed: got %v", request, err)
				}
				if err := p.Run(t.Context(), f); err != nil || !p.Passed() {
					t.Errorf("after request %d failed: got %v", request, err)
				}
			}
		})
	}
}

// TestProbeFails: what the service answers does not get lost.
func TestProbeFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method string
		fault  fault
		want   func(e *driver.Error) bool
	}{
		"no answer":                  {"put", noRequest, func(e *driver.Error) bool { return errors.Is(e, errNoAnswer.Err) && !e.Lasting }},
		"no answer to reads":         {"get", noRequest, func(e *driver.Error) bool { return errors.Is(e, errNoAnswer.Err) && !e.Lasting }},
		"refused for another reason": {"put", broken, func(e *driver.Error) bool { return e.Lasting && e.Answered }}, // by a proxy, for example
		"denied":                     {"put", denied, func(e *driver.Error) bool { return e.Action == "s3:PutObject" }},
		"denied reads":               {"get", denied, func(e *driver.Error) bool { return e.Action == "s3:PutObject" }},
		"conflict each time":         {"put", conflict, func(e *driver.Error) bool { return !e.Lasting && !e.Answered }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.fault = func(method string) fault {
				if method == c.method {
					return c.fault
				}
				return none
			}
			p := new(objectstore.Probe)
			for range 10 {
				err := p.Run(t.Context(), f)
				var e *driver.Error
				if !errors.As(err, &e) || !c.want(e) || !e.Unapplied || !strings.Contains(err.Error(), "checking whether the service honours conditional writes, ") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// oneAnswer answers only the first of the writes that race.
type oneAnswer struct {
	*fake
	answered sync.Map
}

func (o *oneAnswer) Put(ctx context.Context, key string, body []byte, version string) (string, error) {
	if _, raced := o.answered.LoadOrStore(key+" "+version, true); raced {
		return "", errNoAnswer
	}
	return o.fake.Put(ctx, key, body, version)
}

// TestProbeOfSingleAnswers: a race in which one write was answered has shown
// nothing.
func TestProbeOfSingleAnswers(t *testing.T) { // F59
	t.Parallel()
	p, o := new(objectstore.Probe), &oneAnswer{fake: newFake()}
	for range 10 {
		if err := p.Run(t.Context(), o); !errors.Is(err, errNoAnswer.Err) || p.Passed() {
			t.Errorf("got %v", err)
		}
	}
}

// TestProbeGoesOn: callers who have time for no more than one request of a slow
// service probe it step by step, although the process is frozen in between.
func TestProbeGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		request, patience time.Duration
		calls             int
	}{
		{50 * time.Millisecond, 240 * time.Millisecond, 1},
		{50 * time.Millisecond, 140 * time.Millisecond, 2},
		{200 * time.Millisecond, 300 * time.Millisecond, 3},
		{900 * time.Millisecond, 300 * time.Millisecond, 5},
	} {
		t.Run(fmt.Sprint(c.request, " in ", c.patience), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.before = func(string) { time.Sleep(c.request) }
				p := new(objectstore.Probe)
				calls := 0
				for ; calls < 10 && !p.Passed(); calls++ {
					ctx, cancel := context.WithTimeout(t.Context(), c.patience)
					if err := p.Run(ctx, f); err != nil && (!strings.Contains(err.Error(), "of 4 races done: it goes on") || !errors.Is(err, context.DeadlineExceeded)) {
						t.Error(err)
					}
					cancel()
					time.Sleep(time.Hour)
				}
				if n := len(f.requests()); calls != c.calls || n != 40 {
					t.Errorf("%d calls, %d requests, want %d and 40", calls, n, c.calls)
				}
			})
		})
	}
}

// TestProbeCutShort: a step ends immediately if its caller gives up, and after
// a second if there is no answer. It has shown nothing then, and may have
// changed the object that it had.
func TestProbeCutShort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		give func(context.Context) (context.Context, context.CancelFunc)
		want time.Duration
	}{
		"cancelled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(300*time.Millisecond, cancel)
			return ctx, cancel
		}, 300 * time.Millisecond},
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 300*time.Millisecond)
		}, 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &stuck{fake: newFake(), after: 12} // in the third step
				s.before = func(string) { time.Sleep(100 * time.Millisecond) }
				p := new(objectstore.Probe)
				ctx, cancel := c.give(t.Context())
				defer cancel()
				began := time.Now()
				if err := p.Run(ctx, s); err == nil || p.Passed() || time.Since(began) != c.want {
					t.Errorf("error %v after %v, want one after %v", err, time.Since(began), c.want)
				}
				s.after = 1000
				s.requests()
				if err := p.Run(t.Context(), s); err != nil || !p.Passed() {
					t.Error(err)
				}
				if n := len(s.requests()); n != 4+3*9 { // a new object, and then the three races that are left
					t.Errorf("then %d requests, want 31", n)
				}
			})
		})
	}
}

// stuck are objects that stop answering after so many writes.
type stuck struct {
	*fake
	after int
}

func (s *stuck) Put(ctx context.Context, key string, body []byte, version string) (string, error) {
	next, err := s.fake.Put(ctx, key, body, version)
	s.mu.Lock()
	s.after--
	hangs := s.after < 0
	s.mu.Unlock()
	if !hangs {
		return next, err
	}
	<-ctx.Done()
	return "", &driver.Error{Store: "fake", Err: ctx.Err()}
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
					err := new(objectstore.Probe).Run(t.Context(), f)
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

// TestProbesAtOnce: processes that start at the same time do not disturb each
// other.
func TestProbesAtOnce(t *testing.T) {
	t.Parallel()
	f := newFake()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			expect.OK(t, new(objectstore.Probe).Run(t.Context(), f))
		})
	}
	wg.Wait()
}
