package integration_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// BenchmarkStores compares acquire, empty handler and release on every other
// store than DynamoDB with the same requests of the client alone and, on Redis,
// with other libraries of locks. For DynamoDB there is BenchmarkCycle.
func BenchmarkStores(b *testing.B) {
	type named struct {
		name string
		client
	}
	for _, s := range []struct {
		name   string
		start  func(testing.TB) place
		others []named // the first is what all are compared with
	}{
		{"Redis", onRedis(servers.Redis), []named{{"go-redis alone", bareRedis}, {"bsm/redislock", redislockCycle}, {"redsync", redsyncCycle}}},
		{"a quorum of three Redis servers", onQuorum(0), []named{{"redsync", redsyncCycle}}},
		{"S3 (versitygw)", onS3(servers.VersityGW), []named{{"PutObject alone", bareS3}}},
		{"Azure Blob Storage (Azurite)", onAzurite, []named{{"Upload alone", bareAzure}}},
	} {
		p := s.start(b)
		for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
			b.Run(fmt.Sprintf("%s/delay=%v", s.name, delay), func(b *testing.B) {
				ctx, cancel := context.WithTimeout(b.Context(), invocationTime)
				defer cancel()
				var all []*contestant
				for _, o := range s.others {
					all = append(all, inPlace(ctx, b, p, delay, o.name, o.client))
				}
				benchmarkStore(b, s.name, delay, append(all, storeContestants(ctx, b, p, delay)...))
			})
		}
	}
}

// benchmarkStore compares all contestants with the first one.
func benchmarkStore(b *testing.B, name string, delay time.Duration, all []*contestant) {
	rounds, runs := 20, 50
	if delay > 0 {
		rounds, runs = 15, 10
	}
	if testing.Short() {
		rounds = 2
	}
	for _, c := range all {
		c.block(b, -20, 20) // warm-up
		c.latency, c.blocks = nil, nil
	}
	for b.Loop() {
		for r := range rounds {
			round(b, all, r, runs)
		}
	}
	f := newFigures(fmt.Sprintf("Cycle on %s, %v per request", name, delay), "", "p50 ms", "p99 ms", "CPU ms", "requests", "p50/first", "CPU/first")
	for _, c := range all {
		f.add(c.name, ms(c.quantile(0.5)), ms(c.quantile(0.99)), ms(time.Duration(c.perRun(blockCPU))), number(c.perRun(blockRequests)),
			times(c.ratio(all[0], blockP50)), times(c.ratio(all[0], blockCPU)))
	}
	last := all[len(all)-1]
	b.ReportMetric(last.ratio(all[0], blockP50), "p50/first")
	b.ReportMetric(last.perRun(blockRequests), "requests/cycle")
}

// cycler runs cycles, each with the name that it is given.
type cycler func(name string) error

// client prepares cycles over a wire.
type client func(context.Context, testing.TB, place, *wire) cycler

// storeContestants run cycles of the library: with new names, with names that
// have a row, and with one name that no other process uses.
func storeContestants(ctx context.Context, b *testing.B, p place, delay time.Duration) []*contestant {
	one := rand.Text()
	return []*contestant{
		inPlace(ctx, b, p, delay, "store alone, new names", func(ctx context.Context, tb testing.TB, p place, w *wire) cycler {
			store := p.store(tb, w)
			return func(name string) error { return storeCycle(ctx, store, name) }
		}),
		inPlace(ctx, b, p, delay, "WithLock, one name", func(ctx context.Context, tb testing.TB, p place, w *wire) cycler {
			locked := lockedCycle(ctx, tb, p, w)
			return func(string) error { return locked(one) }
		}),
		inPlace(ctx, b, p, delay, "WithLock, names with a row", rowCycle),
		inPlace(ctx, b, p, delay, "WithLock, new names", lockedCycle),
	}
}

// inPlace returns a contestant with its own connections and names.
func inPlace(ctx context.Context, b *testing.B, p place, delay time.Duration, name string, prepare client) *contestant {
	w := newWire(delay)
	run := prepare(ctx, b, p, w)
	prefix := "cycle/" + rand.Text() + "/"
	n := 0
	return &contestant{name: name, wire: w, run: func(int) error {
		n++
		return run(fmt.Sprint(prefix, n))
	}}
}

func lockedCycle(ctx context.Context, tb testing.TB, p place, w *wire) cycler {
	h := middleware.WithLock(itself, emptyHandler, middleware.Store(p.store(tb, w)), middleware.Logger(discard))
	return func(name string) error { return h(ctx, lock.Key{Name: name}) }
}

// rowCycle uses names of which others have made rows. A store remembers some of
// what it has seen, so there is a new one after each name was used once.
func rowCycle(ctx context.Context, tb testing.TB, p place, w *wire) cycler {
	names := make([]string, 500)
	others := lockedCycle(ctx, tb, p, newWire(0))
	for i := range names {
		names[i] = fmt.Sprint("row/", rand.Text())
		expect.Must(tb, others(names[i]))
	}
	var run cycler
	i := 0
	return func(string) error {
		if i%len(names) == 0 {
			run = lockedCycle(ctx, tb, p, w)
		}
		i++
		return run(names[i%len(names)])
	}
}

func benchRedis(tb testing.TB, endpoint string, w *wire) *redis.Client {
	tb.Helper()
	c := expect.Value(newRedis(endpoint))(tb)
	c.AddHook(hook{w})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// bareRedis is the smallest possible lock with the client alone: two scripts,
// no fence, no memory of events.
func bareRedis(ctx context.Context, tb testing.TB, p place, w *wire) cycler {
	c := benchRedis(tb, p.Endpoints[0], w)
	acquire := redis.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`)
	release := redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	return func(name string) error {
		token := rand.Text()
		if err := acquire.Run(ctx, c, []string{name}, token, time.Minute.Milliseconds()).Err(); err != nil {
			return err
		}
		return release.Run(ctx, c, []string{name}, token).Err()
	}
}

func redislockCycle(ctx context.Context, tb testing.TB, p place, w *wire) cycler {
	locker := redislock.New(benchRedis(tb, p.Endpoints[0], w))
	return func(name string) error {
		l, err := locker.Obtain(ctx, name, time.Minute, nil)
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}
}

func redsyncCycle(ctx context.Context, tb testing.TB, p place, w *wire) cycler {
	var pools []redsyncredis.Pool
	for _, endpoint := range p.Endpoints {
		pools = append(pools, goredis.NewPool(benchRedis(tb, endpoint, w)))
	}
	rs := redsync.New(pools...)
	return func(name string) error {
		m := rs.NewMutex(name, redsync.WithExpiry(time.Minute))
		if err := m.LockContext(ctx); err != nil {
			return err
		}
		_, err := m.UnlockContext(ctx)
		return err
	}
}

// objectBody is about as long as the row of a lock.
var objectBody = bytes.Repeat([]byte("lambdalock "), 30)

// bareS3 writes an object if there is none, and once more if it is the same.
func bareS3(ctx context.Context, _ testing.TB, p place, w *wire) cycler {
	c := newS3(p.Endpoints[0], w)
	put := func(name string, in s3.PutObjectInput) (*s3.PutObjectOutput, error) {
		in.Bucket, in.Key, in.Body = aws.String(bucket), aws.String("bare/"+name), bytes.NewReader(objectBody)
		return c.PutObject(ctx, &in)
	}
	return func(name string) error {
		out, err := put(name, s3.PutObjectInput{IfNoneMatch: aws.String("*")})
		if err != nil {
			return err
		}
		_, err = put(name, s3.PutObjectInput{IfMatch: out.ETag})
		return err
	}
}

// bareAzure does the same with a blob.
func bareAzure(ctx context.Context, tb testing.TB, p place, w *wire) cycler {
	c := expect.Value(newContainer(p.Endpoints[0], w))(tb)
	put := func(name string, condition blob.ModifiedAccessConditions) (blockblob.UploadResponse, error) {
		return c.NewBlockBlobClient("bare/"+name).Upload(ctx, streaming.NopCloser(bytes.NewReader(objectBody)), &blockblob.UploadOptions{
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &condition},
		})
	}
	absent := azcore.ETagAny
	return func(name string) error {
		out, err := put(name, blob.ModifiedAccessConditions{IfNoneMatch: &absent})
		if err != nil {
			return err
		}
		_, err = put(name, blob.ModifiedAccessConditions{IfMatch: out.ETag})
		return err
	}
}

// BenchmarkBootstrap reports how large the binary of a function is with each
// store.
func BenchmarkBootstrap(b *testing.B) {
	dir := b.TempDir()
	f := newFigures("Size of a function's binary (stripped, lambda.norpc)", "", "MB")
	for b.Loop() {
		for _, p := range []struct{ name, folder string }{
			{"raw SDK, DynamoDB", "raw"}, {"DynamoDB", "lambdalock"}, {"Redis", "redis"}, {"S3", "s3"}, {"Azure Blob", "azure"},
		} {
			f.add(p.name, fmt.Sprintf("%.2f", float64(size(b, build(b, dir, p.folder)))/1e6))
		}
	}
}
