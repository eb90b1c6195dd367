package powertools_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/migration/powertools"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const (
	table     = "idempotency"
	retention = 24 * time.Hour // of what write.py and write.mjs write
)

// languages has the tables that the real packages wrote.
var languages = map[string]struct {
	language     powertools.Language
	file, prefix string
}{
	"Python":     {powertools.Python, "table-python.gz", "orders.app.handler"},
	"TypeScript": {powertools.TypeScript, "table-typescript.gz", "orders"},
}

type order struct {
	Order  int    `json:"order"`
	Status string `json:"status"`
}

// fixture is an old table and a new function.
type fixture struct {
	*dynamodb.Client
	reads, writes atomic.Int64
	mu            sync.Mutex
	runs          map[string]int // by event, of both versions
	work          func(context.Context) error
	options       powertools.Table[json.RawMessage]
	store         *memstore.Store
}

func (f *fixture) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	f.reads.Add(1)
	return f.Client.GetItem(ctx, in, opts...)
}

func (f *fixture) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	f.writes.Add(1)
	return f.Client.UpdateItem(ctx, in, opts...)
}

func whole(event json.RawMessage) any { return event }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{
		Client: dynamotest.New(map[string]string{table: "id"}), runs: map[string]int{}, store: memstore.New(),
		work: func(context.Context) error { return nil },
	}
	f.options = powertools.Table[json.RawMessage]{
		Client: f, Name: table, Language: powertools.Python, Prefix: "orders", Part: whole, CutOver: time.Now(), Retention: retention,
	}
	return f
}

// load puts the rows of a file into the old table and lets time pass to when
// they were written. It returns the events by the state of their rows.
func (f *fixture) load(t *testing.T, file string) (completed, ending, endless []string) {
	t.Helper()
	packed := expect.Value(os.Open("testdata/" + file))(t)
	defer packed.Close()
	text := expect.Value(gzip.NewReader(packed))(t)
	written := time.Time{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		event, row, _ := strings.Cut(lines.Text(), "\t")
		var item map[string]json.RawMessage
		expect.Must(t, json.Unmarshal([]byte(row), &item))
		f.put(t, item)
		var expiration struct {
			N int64 `json:",string"`
		}
		expect.Must(t, json.Unmarshal(item["expiration"], &expiration))
		if at := time.Unix(expiration.N, 0).Add(-retention); at.After(written) {
			written = at
		}
		switch _, ends := item["in_progress_expiration"]; {
		case strings.Contains(string(item["status"]), "COMPLETED"):
			completed = append(completed, event)
		case ends:
			ending = append(ending, event)
		default:
			endless = append(endless, event)
		}
	}
	if len(completed) != 900 || len(ending) != 50 || len(endless) != 50 {
		t.Fatalf("%d completed, %d that end, %d that do not say so", len(completed), len(ending), len(endless))
	}
	time.Sleep(time.Until(written))
	f.options.CutOver = time.Now()
	return completed, ending, endless
}

// put writes a row as the dump has it.
func (f *fixture) put(t *testing.T, item map[string]json.RawMessage) {
	t.Helper()
	attributes := map[string]types.AttributeValue{}
	for name, v := range item {
		attributes[name] = attribute(t, v)
	}
	name := table
	expect.Value(f.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: attributes}))(t)
}

// attribute decodes a value of DynamoDB's JSON.
func attribute(t *testing.T, text json.RawMessage) types.AttributeValue {
	t.Helper()
	var v struct {
		S, N *string
		M    map[string]json.RawMessage
	}
	expect.Must(t, json.Unmarshal(text, &v))
	switch {
	case v.S != nil:
		return &types.AttributeValueMemberS{Value: *v.S}
	case v.N != nil:
		return &types.AttributeValueMemberN{Value: *v.N}
	}
	m := map[string]types.AttributeValue{}
	for name, e := range v.M {
		m[name] = attribute(t, e)
	}
	return &types.AttributeValueMemberM{Value: m}
}

// run is the work of both versions.
func (f *fixture) run(ctx context.Context, event string) (o order, err error) {
	if err := f.work(ctx); err != nil {
		return o, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[event]++
	if err := json.Unmarshal([]byte(event), &o); err != nil {
		return o, err
	}
	o.Status = "shipped"
	return o, nil
}

// function returns the new version.
func (f *fixture) function(opts ...middleware.Option) func(context.Context, json.RawMessage) (order, error) {
	key := func(_ context.Context, event json.RawMessage) (lock.Key, error) {
		return lock.Key{Name: string(event), Event: string(event)}, nil
	}
	handler := powertools.Handler(f.options, func(ctx context.Context, event json.RawMessage) (order, error) { return f.run(ctx, string(event)) })
	return middleware.WithLock(key, handler, append(opts, middleware.Store(f.store), middleware.OnCompleted(middleware.Replay),
		middleware.Remember(3*retention), middleware.Logger(slog.New(slog.DiscardHandler)))...)
}

// deliver delivers each event so many times at once, and once more.
func deliver(t *testing.T, times int, function func(context.Context, json.RawMessage) (order, error), events []string, check func(event string, o order, err error)) {
	t.Helper()
	for _, event := range events {
		once := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			o, err := function(ctx, json.RawMessage(event))
			check(event, o, err)
		}
		var all sync.WaitGroup
		for range times {
			all.Go(once)
		}
		all.Wait()
		once()
	}
}

// TestCutOver takes over the tables that the real packages wrote, after the old
// version has ended.
func TestCutOver(t *testing.T) {
	t.Parallel()
	for name, l := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				completed, ending, endless := f.load(t, l.file)
				f.options.Language, f.options.Prefix, f.options.Validation = l.language, l.prefix, total
				function := f.function()
				for event, n := range f.cutOver(t, function, completed, ending, endless) {
					if n != 1 {
						t.Errorf("%s ran %d times", event, n)
					}
				}
			})
		})
	}
}

func total(event json.RawMessage) any {
	var e struct{ Total json.RawMessage }
	_ = json.Unmarshal(event, &e)
	return e.Total
}

// cutOver returns how often each event ran that had to run.
func (f *fixture) cutOver(t *testing.T, function func(context.Context, json.RawMessage) (order, error), completed, ending, endless []string) map[string]int {
	t.Helper()
	var fresh []string
	for i := range 100 {
		fresh = append(fresh, fmt.Sprintf(`{"order": %d, "total": 1.50}`, 10_000+i))
	}
	shipped := func(event string, o order, err error) {
		var sent order
		_ = json.Unmarshal([]byte(event), &sent)
		if held := new(lock.HeldError); errors.As(err, &held) {
			return // by one of the other deliveries
		}
		if err != nil || o.Status != "shipped" || o.Order != sent.Order {
			t.Errorf("%s: %+v, %v", event, o, err)
		}
	}
	held := func(event string, _ order, err error) {
		if held := new(lock.HeldError); !errors.As(err, &held) || !held.Duplicate || held.Until.Before(time.Now()) {
			t.Errorf("%s: %v", event, err)
		}
	}
	deliver(t, 3, function, completed, shipped)
	deliver(t, 3, function, fresh, shipped)
	f.requests(t, "1 read per unknown event", len(completed)+len(fresh), 0)
	deliver(t, 3, function, append(ending, endless...), held)
	f.reads.Store(0)

	time.Sleep(65 * time.Second)
	deliver(t, 3, function, ending, shipped)
	deliver(t, 0, function, completed, shipped)
	f.requests(t, "1 read per event that was in progress", len(ending), 0)
	deliver(t, 3, function, endless, held)
	f.reads.Store(0)

	time.Sleep(retention)
	deliver(t, 3, function, append(endless, `{"order": 20000}`), shipped)
	deliver(t, 0, function, completed, shipped)
	f.requests(t, "0 after the window", 0, 0)
	if want := len(ending) + len(endless) + len(fresh) + 1; len(f.runs) != want {
		t.Errorf("%d events ran, want %d", len(f.runs), want)
	}
	return f.runs
}

func (f *fixture) requests(t *testing.T, what string, reads, writes int) {
	t.Helper()
	if r, w := f.reads.Load(), f.writes.Load(); int(r) != reads || int(w) != writes {
		t.Errorf("%s: %d reads and %d writes, want %d and %d", what, r, w, reads, writes)
	}
	f.reads.Store(0)
	f.writes.Store(0)
}

// TestBothVersions delivers each event twice, to either version by chance,
// until it is acknowledged. Work takes its time, and some of it fails.
func TestBothVersions(t *testing.T) {
	t.Parallel()
	for name, l := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.options.Language, f.options.CutOver = l.language, time.Now().Add(time.Hour)
				f.work = func(context.Context) error {
					time.Sleep(rand.N(5 * time.Second))
					if rand.N(5) == 0 {
						return errors.New("failed")
					}
					return nil
				}
				versions := []func(context.Context, json.RawMessage) (order, error){f.function(), f.old}
				var all sync.WaitGroup
				for i := range 200 {
					event := json.RawMessage(fmt.Sprintf(`{"order": %d}`, i%100))
					all.Go(func() {
						for {
							ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
							o, err := versions[rand.N(2)](ctx, event)
							cancel()
							if err == nil && o == (order{i % 100, "shipped"}) {
								return
							}
							if err == nil || t.Context().Err() != nil {
								t.Errorf("%s: %+v", event, o)
								return
							}
							time.Sleep(rand.N(10 * time.Second))
						}
					})
				}
				all.Wait()
				if len(f.runs) != 100 {
					t.Errorf("%d events ran", len(f.runs))
				}
				for event, n := range f.runs {
					if n != 1 {
						t.Errorf("%s ran %d times", event, n)
					}
				}
			})
		})
	}
}
