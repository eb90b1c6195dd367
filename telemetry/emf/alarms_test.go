package emf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/telemetry/emf"
)

// account is an AWS account with a lock table and one function. It keeps what
// CloudWatch gets: from the lines that the library writes, and from DynamoDB.
type account struct {
	table, namespace string
	logs             template // what counts the lines of the log
	server           *fakedynamo.Server
	client           *dynamodb.Client

	mu     sync.Mutex
	points []point
}

func newAccount(t *testing.T, table, namespace string, logs template) *account {
	t.Helper()
	a := &account{table: table, namespace: namespace, logs: logs, server: fakedynamo.New()}
	a.client = dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", HTTPClient: a, BaseEndpoint: aws.String("http://localhost"), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	for _, name := range []string{table, "pages"} {
		expect.Must(t, dynamostore.EnsureTable(t.Context(), a.client, name))
	}
	return a
}

func (a *account) add(points ...point) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.points = append(a.points, points...)
}

// Do answers a request of the client, and counts it as DynamoDB does:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
func (a *account) Do(r *http.Request) (_ *http.Response, err error) {
	defer func() {
		if v := recover(); v != nil { // the fault that closes the connection
			err = fmt.Errorf("%v", v)
		}
	}()
	w := httptest.NewRecorder()
	a.server.ServeHTTP(w, r)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	name := func(metric string) string {
		return metricName("AWS/DynamoDB", metric, "TableName="+a.table, "Operation="+operation)
	}
	switch body := w.Body.String(); {
	case strings.Contains(body, "ConditionalCheckFailed"):
		a.add(point{metricName("AWS/DynamoDB", "ConditionalCheckFailedRequests", "TableName="+a.table), time.Now(), 1})
	case strings.Contains(body, "ProvisionedThroughputExceeded"), strings.Contains(body, "ThrottlingError"):
		a.add(point{name("ThrottledRequests"), time.Now(), 1})
	case w.Code >= http.StatusInternalServerError:
		a.add(point{name("SystemErrors"), time.Now(), 1})
	default:
		a.add(point{name("SuccessfulRequestLatency"), time.Now(), 5})
	}
	return w.Result(), nil
}

// stdout takes the lines of emf.
type stdout struct {
	*account
	t *testing.T
}

func (o stdout) Write(p []byte) (int, error) {
	var line struct {
		AWS     struct{ Timestamp int64 } `json:"_aws"`
		Service string
	}
	if err := json.Unmarshal(p, &line); err != nil {
		o.t.Error(err)
	}
	for name, values := range parse(o.t, string(p)) {
		for _, v := range values {
			o.add(point{metricName("lambdalock", name, "service="+line.Service), time.UnixMilli(line.AWS.Timestamp), v})
		}
	}
	return len(p), nil
}

// Write takes a line of the log.
func (a *account) Write(p []byte) (int, error) {
	a.add(a.logs.count(string(p), time.Now())...)
	return len(p), nil
}

func (a *account) store() *dynamostore.Store { return dynamostore.New(a.client, a.table) }

// job is an event: what it locks, which identity it has, and what its handler
// does.
type job struct {
	name, event string
	work        func(context.Context) error
}

func done(context.Context) error { return nil }

// run handles a job as a function would, with a deadline of one minute.
func (a *account) run(t *testing.T, logger *slog.Logger, j job, opts ...middleware.Option) error {
	key := func(_ context.Context, j job) (lock.Key, error) { return lock.Key{Name: j.name, Event: j.event}, nil }
	handle := func(ctx context.Context, j job) error { return j.work(ctx) }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return middleware.WithLock(key, handle, append(opts,
		middleware.Store(a.store()), middleware.Namespace(a.namespace), middleware.Logger(logger), emf.Metrics(&emf.Options{Output: stdout{a, t}}),
	)...)(ctx, j)
}

// incident is what happens to a function, and the alarms that sound.
type incident struct {
	happens    func(t *testing.T, a *account, run func(job, ...middleware.Option) error)
	logs, emfs []string // nil: as logs
}

var errWork = errors.New("work")

// incidents are one for each alarm, and the ordinary troubles for which nobody
// needs to get up.
var incidents = map[string]incident{
	"ordinary troubles": {func(_ *testing.T, a *account, run func(job, ...middleware.Option) error) {
		for i := range 60 {
			name := fmt.Sprint("n", i)
			_ = run(job{name, name, done})
			switch i % 10 {
			case 0:
				_ = run(job{name, name, done}) // a duplicate
			case 1:
				_ = run(job{name, "fails", func(context.Context) error { return errWork }})
			case 2:
				_ = run(job{name, "refused", func(context.Context) error { return run(job{name, "other", done}) }})
			}
			time.Sleep(30 * time.Second)
		}
		a.each(2, fakedynamo.Throttle) // the library tries again
		for i := range 20 {
			_ = run(job{fmt.Sprint("throttled", i), "e", done})
		}
		a.server.OnRequest(nil)
		a.die(run, "once")
		a.always(fakedynamo.Deny)
		_ = run(job{"denied", "once", done})
	}, []string{}, nil},
	"a handler outlives its lease": {func(_ *testing.T, _ *account, run func(job, ...middleware.Option) error) {
		_ = run(job{"n", "", func(context.Context) error {
			time.Sleep(20 * time.Second)
			return run(job{"n", "", done}) // takes the lock over
		}}, middleware.Engine(func(o *lock.Options) { o.Lease = lock.FixedLease(10 * time.Second) }))
	}, []string{"Lost"}, nil},
	"the completion fails": {func(_ *testing.T, a *account, run func(job, ...middleware.Option) error) {
		_ = run(job{"n", "e", func(context.Context) error { a.always(fakedynamo.Deny); return nil }})
	}, []string{"CompleteFailed"}, nil},
	"FailOpen": {func(_ *testing.T, a *account, run func(job, ...middleware.Option) error) {
		a.always(fakedynamo.DropBefore)
		_ = run(job{"n", "e", done}, middleware.FailOpen())
	}, []string{"Unlocked"}, nil},
	"a holder dies in the middle of an event": {func(_ *testing.T, a *account, run func(job, ...middleware.Option) error) {
		a.dieAt(lock.Key{Name: "n", Event: "e"})
		_ = run(job{"n", "e", done}, middleware.OnInterrupted(middleware.Fail))
	}, []string{"Interrupted"}, nil},
	"no permission": {func(_ *testing.T, a *account, run func(job, ...middleware.Option) error) {
		a.always(fakedynamo.Deny)
		for range 3 { // the attempts of one asynchronous event
			_ = run(job{"n", "e", done})
			time.Sleep(2 * time.Minute)
		}
	}, []string{"StoreFailed"}, nil},
	"holders die": {func(_ *testing.T, a *account, run func(job, ...middleware.Option) error) {
		for i := range 3 {
			a.die(run, fmt.Sprint(i))
		}
	}, []string{"TakenOver"}, nil},
	"an event kills each of its runs": {func(t *testing.T, a *account, run func(job, ...middleware.Option) error) {
		for range 4 {
			a.kill(t, run)
		}
	}, []string{"TakenOver"}, nil},
	"one name is busy": {func(_ *testing.T, _ *account, run func(job, ...middleware.Option) error) {
		for range 20 {
			_ = run(job{"n", "", func(context.Context) error {
				for range 3 {
					time.Sleep(15 * time.Second)
					_ = run(job{"n", "", done})
				}
				return nil
			}})
		}
	}, []string{"Contention"}, nil},
	"many duplicates": {func(_ *testing.T, _ *account, run func(job, ...middleware.Option) error) {
		for range 100 {
			_ = run(job{"n", "e", done})
			time.Sleep(10 * time.Second)
		}
	}, []string{"Contention"}, []string{}},
	"throttled writes": {func(_ *testing.T, a *account, run func(job, ...middleware.Option) error) {
		a.each(2, fakedynamo.Throttle)
		for i := range 100 {
			_ = run(job{fmt.Sprint(i), "e", done})
			time.Sleep(10 * time.Second)
		}
	}, []string{"Throttles"}, nil},
	"throttled transactions": {func(t *testing.T, a *account, run func(job, ...middleware.Option) error) {
		n := 0
		a.server.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
			if r.Operation != "TransactWriteItems" {
				return fakedynamo.None
			}
			if n++; n%2 == 1 {
				return fakedynamo.Throttle
			}
			return fakedynamo.None
		})
		for i := range 100 {
			expect.OK(t, run(job{fmt.Sprint(i), "e", a.visit}))
			time.Sleep(10 * time.Second)
		}
	}, []string{"Throttles"}, nil},
	"work goes on for almost an hour": {func(t *testing.T, a *account, _ func(job, ...middleware.Option) error) { a.work(t, 59*time.Minute) }, []string{}, nil},
	"work hangs":                      {func(t *testing.T, a *account, _ func(job, ...middleware.Option) error) { a.work(t, 75*time.Minute) }, []string{"OldestHeld"}, nil},
	// A write that was applied and answered by an error is refused when it is
	// repeated. DynamoDB counts that as a refusal, and the library does not.
	"errors of DynamoDB": {func(_ *testing.T, a *account, run func(job, ...middleware.Option) error) {
		a.each(2, fakedynamo.ApplyThen500)
		for i := range 100 {
			_ = run(job{fmt.Sprint(i), "e", done})
			time.Sleep(10 * time.Second)
		}
	}, []string{"Contention", "SystemErrors"}, []string{"SystemErrors"}},
}

// always makes every request fail.
func (a *account) always(f fakedynamo.Fault) { a.each(1, f) }

// each makes every nth request fail, beginning with the first.
func (a *account) each(n int, f fakedynamo.Fault) {
	i := 0
	a.server.OnRequest(func(fakedynamo.Request) fakedynamo.Fault {
		if i++; (i-1)%n == 0 {
			return f
		}
		return fakedynamo.None
	})
}

// die lets a process die while it holds a lock, and then handles the next
// event.
func (a *account) die(run func(job, ...middleware.Option) error, name string) {
	a.dieAt(lock.Key{Name: name})
	_ = run(job{name, "", done})
}

// dieAt lets a process die while it holds a lock, which ends.
func (a *account) dieAt(key lock.Key) {
	locker, err := lock.New(a.store(), &lock.Options{Namespace: a.namespace, Lease: lock.FixedLease(10 * time.Second), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	if _, err := locker.Acquire(context.Background(), key); err != nil {
		panic(err)
	}
	time.Sleep(time.Minute)
}

// kill lets a process die in its handler. Nothing of it goes on before the end
// of the test.
func (a *account) kill(t *testing.T, run func(job, ...middleware.Option) error) {
	dead := make(chan struct{})
	t.Cleanup(func() { close(dead) })
	go func() {
		_ = run(job{"n", "e", func(context.Context) error { <-dead; return nil }}, middleware.Engine(func(o *lock.Options) { o.Lease = lock.FixedLease(10 * time.Second) }))
	}()
	time.Sleep(2 * time.Minute)
}

// visit completes its event in a transaction.
func (a *account) visit(ctx context.Context) error {
	_, err := dynamostore.Transact(ctx, a.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
		Put: &types.Put{TableName: aws.String("pages"), Item: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: "page"}}},
	}}})
	return err
}

// TestAlarmsAreDrivenByTheirFaults shows that each alarm of the construct
// sounds for its fault and for no other, by what the library writes and what
// DynamoDB counts; and that an alarm of another table and service is silent.
func TestAlarmsAreDrivenByTheirFaults(t *testing.T) {
	parameters := map[string]string{"Table": "orders-locks", "Namespace": "orders", "Topic": "arn", "LogGroup": "orders"}
	others := map[string]string{"Table": "dev-locks", "Namespace": "dev", "Topic": "arn", "LogGroup": "dev"}
	read := func(source string, parameters map[string]string) template {
		return readTemplate(t, "../../infra/alarms/"+source+".json", parameters)
	}
	formats := map[string]func(io.Writer) slog.Handler{
		"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		"JSON": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
	}
	driven := map[string]bool{}
	for name, f := range incidents {
		for format, handler := range formats {
			t.Run(name+", "+format, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := newAccount(t, parameters["Table"], parameters["Namespace"], read("logs", parameters))
					logger := slog.New(handler(a))
					f.happens(t, a, func(j job, opts ...middleware.Option) error { return a.run(t, logger, j, opts...) })
					a.server.OnRequest(nil)
					a.look(t)
					for source, want := range map[string][]string{"logs": f.logs, "emf": f.emfs, "held": f.logs} {
						if want == nil {
							want = f.logs
						}
						alarms := read(source, parameters).alarms
						want = slices.DeleteFunc(slices.Clone(want), func(name string) bool { _, ok := alarms[name]; return !ok })
						got, err := read(source, parameters).sounding(a.points)
						if err != nil || !slices.Equal(got, want) {
							t.Errorf("%s: %v sound (%v), want %v", source, got, err, want)
						}
						for _, name := range got {
							driven[source+" "+name] = true
						}
						if got, err := read(source, others).sounding(a.points); err != nil || len(got) != 0 {
							t.Errorf("%s: %v of another table sound (%v)", source, got, err)
						}
					}
				})
			})
		}
	}
	for _, source := range []string{"logs", "emf", "held"} {
		for name, a := range read(source, parameters).alarms {
			if !driven[source+" "+name] {
				t.Errorf("%s: no fault drives the alarm %s", source, name)
			}
			if !strings.Contains(a.AlarmDescription, "lambdalock ") || !strings.Contains(a.AlarmDescription, "--store dynamodb://orders-locks") {
				t.Errorf("%s: the description of %s names no command: %s", source, name, a.AlarmDescription)
			}
		}
	}
}
