package integration_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// coarseLease is how much later than asked for a lease may end on a server that
// counts them.
const coarseLease = 3 * time.Second

// backends are what every store-level test runs on.
var backends = []backend{
	{name: "embedded", kills: 100, contended: 10_000, faulted: 10_000, start: onTable(embedded)},
	{name: "dynoxide", kills: 1000, killsShort: 25, contended: 10_000, faulted: 100_000, faultedShort: 600, start: onTable(servers.Dynoxide)},
	{name: "DynamoDBLocal", kills: 100, contended: 1000, faulted: 20_000, waiters: 4, start: onTable(servers.DynamoDBLocal)},
	{name: "Redis", kills: 1000, killsShort: 25, ownClock: true, contended: 100_000, faulted: 100_000, faultedShort: 600, start: onRedis(servers.Redis)},
	{name: "Valkey", ownClock: true, contended: 10_000, start: onRedis(servers.Valkey)},
	{name: "RedisQuorum", ownClock: true, contended: 10_000, start: onQuorum(0)},
	{name: "RedisQuorumOneDown", ownClock: true, contended: 10_000, start: onQuorum(1)},
	{name: "S3gofakes3", kills: 100, ownClock: true, lateEnd: coarseLease, contended: 10_000, faulted: 10_000, faultedShort: 120, waiters: 4, start: onS3(fakeS3)},
	{name: "S3versitygw", kills: 100, ownClock: true, lateEnd: coarseLease, contended: 10_000, faulted: 5000, waiters: 4, start: onS3(servers.VersityGW)},
	{name: "Azurite", kills: 100, ownClock: true, lateEnd: coarseLease, contended: 10_000, faulted: 5000, waiters: 4, start: onAzurite},
}

// backend is a kind of store and the server for it.
type backend struct {
	name     string
	ownClock bool // leases are judged by the server's clock
	// lateEnd is how much later than asked for a lease may end, because the server
	// counts whole seconds.
	lateEnd time.Duration
	// contended is how many acquisitions the long form of TestContention makes.
	contended int
	// faulted is the same for TestContentionUnderFaults, and faultedShort for its
	// short form. Zero: none.
	faulted, faultedShort int
	// kills is how many processes the long form of TestCrashes kills, and
	// killsShort the same for its short form. Zero: it does not run.
	kills, killsShort int
	// waiters of each process; zero: as many as fit.
	waiters int
	start   func(testing.TB) place
}

// wantSame checks that two readings of a row that is held show no change.
func (b *backend) wantSame(t *testing.T, before, after driver.Row) {
	t.Helper()
	if b.ownClock && before.Until.Sub(after.Until).Abs() <= 3*time.Second {
		after.Until = before.Until // it is computed anew for each reader
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the row was changed from\n%+v to\n%+v", before, after)
	}
}

// inEach runs a test on every backend, each time on a new server. Several run
// at the same time, because most of the time is spent waiting.
func inEach(t *testing.T, test func(*testing.T, backend, place)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, b, b.start(t))
		})
	}
}

// place is where locks are kept. Other processes can be told of it.
type place struct {
	Kind      string // a key of openers
	Endpoints []string
}

// openers open the store of a place over a wire.
var openers = map[string]func(place, *wire) (_ driver.Store, closeStore func(), err error){
	"table":  openTable,
	"redis":  openRedis,
	"s3":     openS3,
	"azblob": openAzure,
}

func (p place) open(w *wire) (driver.Store, func(), error) {
	store, closeStore, err := openers[p.Kind](p, w)
	return store, func() { closeStore(); w.next.CloseIdleConnections() }, err
}

// store opens the store for the length of the test. Without a wire, nothing is
// counted or lost.
func (p place) store(tb testing.TB, w *wire) driver.Store {
	tb.Helper()
	if w == nil {
		w = newWire(0)
	}
	store, closeStore, err := p.open(w)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(closeStore)
	return store
}

// onTable sends the first claim itself. A server in Java that has only just
// started may take seconds for it, which the leases of the tests do not allow
// for.
func onTable(start func(testing.TB) servers.Server) func(testing.TB) place {
	return func(tb testing.TB) place {
		s := start(tb)
		store := dynamostore.New(newTable(tb, s), table)
		now := time.Now()
		first := &driver.Claim{Name: "/first", Token: rand.Text(), Holder: "onTable", Now: now, Stamp: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(time.Hour)}
		expect.Granted(store.Acquire(tb.Context(), first))(tb)
		expect.Granted(store.Settle(tb.Context(), &driver.Settlement{Name: first.Name, Token: first.Token, DeleteAfter: first.DeleteAfter}))(tb)
		return place{"table", []string{s.Endpoint}}
	}
}

func openTable(p place, w *wire) (driver.Store, func(), error) {
	return dynamostore.New(newClient(p.Endpoints[0], w), table), func() {}, nil
}

func onRedis(start func(testing.TB, ...string) servers.Server) func(testing.TB) place {
	return func(tb testing.TB) place { return place{"redis", []string{start(tb).Endpoint}} }
}

// onQuorum starts three servers, and kills as many of them as shall be down.
func onQuorum(down int) func(testing.TB) place {
	return func(tb testing.TB) place {
		nodes, p := startQuorum(tb)
		for i := range down {
			nodes[i].Kill()
		}
		return p
	}
}

func startQuorum(tb testing.TB, args ...string) ([]servers.Server, place) {
	var nodes []servers.Server
	p := place{Kind: "redis"}
	for range 3 {
		s := servers.Redis(tb, args...)
		nodes = append(nodes, s)
		p.Endpoints = append(p.Endpoints, s.Endpoint)
	}
	return nodes, p
}

func openRedis(p place, w *wire) (driver.Store, func(), error) {
	var clients []redis.Scripter
	closeStore := func() {}
	for _, endpoint := range p.Endpoints {
		client, err := newRedis(endpoint)
		if err != nil {
			return nil, nil, err
		}
		client.AddHook(hook{w})
		closeOthers := closeStore
		closeStore = func() { _ = client.Close(); closeOthers() }
		if w.clock != nil {
			clients = append(clients, movedScripts{client, w.clock})
		} else {
			clients = append(clients, client)
		}
	}
	if len(clients) == 1 {
		store, err := redisstore.New(clients[0])
		return store, closeStore, err
	}
	store, err := redisquorum.New(clients...)
	return store, closeStore, err
}

// newRedis returns a client with the settings that redisstore asks for.
func newRedis(endpoint string) (*redis.Client, error) {
	o, err := redis.ParseURL(endpoint)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.PoolSize = true, -1, 64
	o.DialerRetries, o.DialerRetryTimeout = 1, time.Millisecond
	return redis.NewClient(o), nil
}

// fakeS3 serves an S3 in memory, in this process.
func fakeS3(tb testing.TB) servers.Server {
	srv := httptest.NewServer(gofakes3.New(s3mem.New()).Server())
	tb.Cleanup(srv.Close)
	return servers.Server{Name: "gofakes3", Endpoint: srv.URL}
}

const bucket = "locks" // also the name of the container

func onS3(start func(testing.TB) servers.Server) func(testing.TB) place {
	return func(tb testing.TB) place {
		s := start(tb)
		w := newWire(0)
		defer w.next.CloseIdleConnections()
		if _, err := newS3(s.Endpoint, w).CreateBucket(tb.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
			tb.Fatalf("%s: %v", s.Name, err)
		}
		return place{"s3", []string{s.Endpoint}}
	}
}

func openS3(p place, w *wire) (driver.Store, func(), error) {
	w.dialect = fault.S3
	return s3store.New(newS3(p.Endpoints[0], w), bucket, "locks/"), func() {}, nil
}

func newS3(endpoint string, rt http.RoundTripper) *s3.Client {
	return s3.New(s3.Options{
		Region: servers.Region, BaseEndpoint: aws.String(endpoint), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(servers.AccessKey, servers.SecretKey, ""),
		HTTPClient:  &http.Client{Transport: rt}, Retryer: aws.NopRetryer{},
		DisableClockSkewCorrection: true, // a moved clock is not that of the signatures
	})
}

func onAzurite(tb testing.TB) place {
	s := servers.Azurite(tb)
	w := newWire(0)
	defer w.next.CloseIdleConnections()
	client, err := newContainer(s.Endpoint, w)
	if err == nil {
		_, err = client.Create(tb.Context(), nil)
	}
	if err != nil {
		tb.Fatalf("%s: %v", s.Name, err)
	}
	return place{"azblob", []string{s.Endpoint}}
}

func openAzure(p place, w *wire) (driver.Store, func(), error) {
	w.dialect = fault.Azure
	client, err := newContainer(p.Endpoints[0], w)
	if err != nil {
		return nil, nil, err
	}
	return azblobstore.New(client, "locks/"), func() {}, nil
}

func newContainer(endpoint string, rt http.RoundTripper) (*container.Client, error) {
	key, err := container.NewSharedKeyCredential(servers.AzuriteAccount, servers.AzuriteKey)
	if err != nil {
		return nil, err
	}
	return container.NewClientWithSharedKeyCredential(endpoint+"/"+servers.AzuriteAccount+"/"+bucket, key, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: rt}},
	})
}
