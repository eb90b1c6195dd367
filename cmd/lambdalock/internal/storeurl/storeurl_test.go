package storeurl_test

import (
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	minserver "github.com/alicebob/miniredis/v2/server"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// setAWS sets credentials, and no more than them.
func setAWS(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "",
	} {
		t.Setenv(name, value)
	}
}

func TestWrongURL(t *testing.T) {
	setAWS(t)
	for name, c := range map[string]struct{ url, want string }{
		"empty":                     {"", "dynamodb://TABLE"},
		"no scheme":                 {"locks", "has no scheme"},
		"unknown scheme":            {"mysql://secret@host/db", `no store for "mysql://"`},
		"no table":                  {"dynamodb://", "names no table"},
		"no table, a parameter":     {"dynamodb://?region=eu-west-1", "names no table"},
		"table and path":            {"dynamodb://locks/x?region=eu-west-1", "not the name of a DynamoDB table"},
		"short table":               {"dynamodb://ab?region=eu-west-1", "not the name of a DynamoDB table"},
		"credentials":               {"dynamodb://id:secret@locks?region=eu-west-1", "leave them out"},
		"unknown parameter":         {"dynamodb://locks?token=secret", `the parameter "token": use only region, endpoint`},
		"parameter twice":           {"dynamodb://locks?region=a&region=b", "more than once"},
		"parameter without value":   {"dynamodb://locks?region=", "region=VALUE"},
		"malformed parameter":       {"dynamodb://locks?region=%zz", "malformed"},
		"endpoint without a scheme": {"dynamodb://locks?region=eu-west-1&endpoint=localhost:8000", "address of a server"},
		"endpoint with a password":  {"dynamodb://locks?region=eu-west-1&endpoint=http://u:secret@host", "address of a server"},
		"redis, no host":            {"redis://", "server 1 of the store's URL has no host"},
		"redis, no host, port":      {"redis://:6379", "no host"},
		"redis, port":               {"redis://u:secret@host:secret", "malformed"},
		"redis, slash":              {"redis://:se/cret@host", "malformed"},
		"redis, digits, slash":      {"redis://u:12/secret@host", "an @ after the host"},
		"redis, digits, hash":       {"redis://u:12#secret@host", "an @ after the host"},
		"redis, digits, mark":       {"redis://u:12?secret@host", "an @ after the host"},
		"redis, percent":            {"redis://u:secret%zz@host", "malformed"},
		"redis, no password":        {"redis://secret@host", "redis://:PASSWORD@HOST"},
		"redis, hash":               {"redis://host/#secret", "has a #"},
		"redis, parameter":          {"redis://host?password=secret", `the parameter "password": use none`},
		"redis, no path":            {"unix://", "no path of a socket"},
		"redis, two slashes":        {"unix://run/redis.sock", "with three slashes"},
		"redis, socket's database":  {"unix:///run/redis.sock?db=x", "not a number"},
		"redis, database":           {"redis://host/locks", "not a number"},
		"redis, negative database":  {"redis://host/-1", "not a number"},
		"redis, quorum of 2":        {"redis://a,redis://b", "name 1 server, or 3, 5"},
		"redis, comma in password":  {"redis://:12,secret@a,redis://b", "a comma in a password is %2C"},
		"redis, comma, 1 server":    {"redis://:12,secret@a", "a comma in a password is %2C"},
		"redis, hosts alone":        {"redis://a,b,c", "server 2 of the store's URL has no redis://"},
		"redis, empty server":       {"redis://a,redis://b,", "server 3"},
		"redis, quorum of 4":        {"redis://a,redis://b,redis://c,redis://d", "names 4 servers"},
		"redis, server twice":       {"redis://a,redis://b,rediss://a:6379", "servers 1 and 3"},
		"s3, no bucket":             {"s3://", "names no bucket"},
		"s3, no bucket, key":        {"s3:///locks", "names no bucket"},
		"s3, bucket":                {"s3://My_Bucket/locks", "not the name of a bucket"},
		"s3, server":                {"s3://localhost:9000/bucket", "?endpoint=URL"},
		"s3, credentials":           {"s3://id:secret@bucket/locks", "AWS_PROFILE"},
		"s3, parameter":             {"s3://bucket?X-Amz-Signature=secret", "use only region, endpoint, path-style"},
		"s3, path style":            {"s3://bucket?path-style=maybe", "true or false"},
		"s3, endpoint":              {"s3://bucket?region=eu-west-1&endpoint=secret", "address of a server"},
		"s3, malformed":             {"s3://bucket/%zz", "malformed"},
		"s3, hash":                  {"s3://bucket/a#b", "malformed"},
		"s3, no Region":             {"s3://bucket", "?region=REGION"},
		"azure, no account":         {"azblob://", "names no account"},
		"azure, account":            {"azblob://My_Account/locks", "not the name of a storage account"},
		"azure, no container":       {"azblob://account", "names no container"},
		"azure, no container /":     {"azblob://account/", "names no container"},
		"azure, container":          {"azblob://account/Locks/x", `"Locks" is not the name of a container`},
		"azure, credentials":        {"azblob://account:secret@account/locks", "AZURE_STORAGE_KEY"},
		"azure, signature":          {"azblob://account/locks?sv=1&sig=secret", "use only endpoint"},
		"azure, endpoint":           {"azblob://account/locks?endpoint=secret", "address of a server"},
		"azure, malformed":          {"azblob://account/locks/%zz", "malformed"},
		"azure, hash":               {"azblob://account/locks#x", "malformed"},
		"no Region":                 {"dynamodb://locks", "?region=REGION"},
		"another Region":            {"dynamodb://arn:aws:dynamodb:eu-west-1:111122223333:table/locks?region=us-east-1", "the ARN of the table is of eu-west-1"},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := storeurl.Open(t.Context(), c.url)
			if store != nil {
				t.Errorf("got a store: %v", store)
			}
			var config *driver.ConfigError
			if !errors.As(err, &config) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a *driver.ConfigError with %q", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("a password, or more than one line: %v", err)
			}
		})
	}
}

func TestNoCredentials(t *testing.T) {
	setAWS(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := storeurl.Open(t.Context(), "dynamodb://locks?region=eu-west-1"); err == nil || !strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Errorf("got %v, want what to set", err)
	}
}

// TestCredentialProcess: what a program prints is not shown, because it may be
// a secret.
func TestCredentialProcess(t *testing.T) {
	for name, c := range map[string]struct{ program, want string }{
		"garbage":   {`echo '{"SecretAccessKey": "secret", "Version": 1'`, "it does not print one JSON object"},
		"no JSON":   {`echo secret; echo secret`, "it does not print one JSON object"},
		"no key":    {`echo '{"Version":1,"SecretAccessKey":"secret"}'`, "missing AccessKeyId"},
		"old":       {`echo '{"Version":2,"AccessKeyId":"id","SecretAccessKey":"secret"}'`, "wrong version"},
		"status":    {`echo secret; exit 3`, "exit status 3"},
		"not there": {"/nowhere/program", "exit status 127"},
		"killed":    {`kill -9 $$`, "exit status 137"},
	} {
		t.Run(name, func(t *testing.T) {
			setAWS(t)
			file := filepath.Join(t.TempDir(), "config")
			program := filepath.Join(t.TempDir(), "program")
			for name, text := range map[string]string{program: c.program, file: "[profile vault]\ncredential_process=sh " + program + "\n"} {
				expect.Must(t, os.WriteFile(name, []byte(text), 0o600))
			}
			for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "vault", "AWS_CONFIG_FILE": file} {
				t.Setenv(name, value)
			}
			_, err := storeurl.Open(t.Context(), "dynamodb://locks?region=eu-west-1")
			if err == nil || !strings.Contains(err.Error(), `from the profile "vault": check its credential_process: `) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want the profile and %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}

// TestRegionOfARN: the table of an ARN is asked for in its own Region.
func TestRegionOfARN(t *testing.T) {
	setAWS(t)
	t.Setenv("AWS_REGION", "us-east-1")
	const arn = "dynamodb://arn:aws:dynamodb:eu-west-1:111122223333:table/locks"
	for _, url := range []string{arn, arn + "/", arn + "?region=eu-west-1"} {
		client, _, err := storeurl.DynamoDB(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if got := client.Options().Region; got != "eu-west-1" || storeurl.Region(url) != got {
			t.Errorf("%s: asked in %s, and other services in %s", url, got, storeurl.Region(url))
		}
	}
}

func TestUnreadableConfiguration(t *testing.T) {
	setAWS(t)
	t.Setenv("AWS_PROFILE", "nobody")
	if _, err := storeurl.Open(t.Context(), "dynamodb://locks?region=eu-west-1"); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("got %v, want the profile that does not exist", err)
	}
}

func TestDynamoDB(t *testing.T) {
	setAWS(t)
	table := expect.Value(localtable.Start(t.Context(), "locks"))(t)
	t.Cleanup(table.Close)
	endpoint := ""
	for _, v := range table.Env {
		if e, ok := strings.CutPrefix(v, "AWS_ENDPOINT_URL_DYNAMODB="); ok {
			endpoint = e
		}
	}
	for name, url := range map[string]string{
		"name":  "dynamodb://locks?region=eu-west-1&endpoint=" + endpoint,
		"slash": "DynamoDB://locks/?region=eu-west-1&endpoint=" + endpoint,
	} {
		t.Run(name, func(t *testing.T) { lockAndRelease(t, url) })
	}
}

func TestS3(t *testing.T) {
	setAWS(t)
	backend := s3mem.New()
	expect.Must(t, backend.CreateBucket("bucket"))
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	for name, url := range map[string]string{
		"prefix":     "s3://bucket/a/b?path-style=true&region=eu-west-1&endpoint=" + server.URL,
		"whole":      "s3://bucket?path-style=true&region=eu-west-1&endpoint=" + server.URL,
		"by address": "s3://bucket/c/?region=eu-west-1&endpoint=" + server.URL, // no host name, so no virtual host
	} {
		t.Run(name, func(t *testing.T) { lockAndRelease(t, url) })
	}
	keys := expect.Value(backend.ListBucket("bucket", &gofakes3.Prefix{}, gofakes3.ListBucketPage{}))(t)
	var got []string
	for _, c := range keys.Contents {
		key, _, _ := strings.Cut(c.Key, "~probe-") // with a random rest
		got = append(got, key)
	}
	slices.Sort(got)
	got = slices.Compact(got)
	want := []string{"", "%2FTestS3%2Fwhole", "a/b/", "a/b/%2FTestS3%2Fprefix", "c/", "c/%2FTestS3%2Fby_address"}
	if !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}

func TestRedis(t *testing.T) {
	s := miniredis.RunT(t)
	s.RequireUserAuth("me", "p@ss,w/rd")
	lockAndRelease(t, "redis://me:p%40ss%2Cw%2Frd@"+s.Addr()+"/3")
	if n := len(s.DB(3).Keys()); n != 1 {
		t.Errorf("%d keys in database 3, want the row", n)
	}
	store := expect.Value(storeurl.Open(t.Context(), "redis://me:secret@"+s.Addr()))(t)
	if _, err := lockerOf(t, store).Acquire(t.Context(), lock.Key{Name: "x"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// TestRedisQuorum: one of three servers is down.
func TestRedisQuorum(t *testing.T) {
	a, b, c := miniredis.RunT(t), miniredis.RunT(t), miniredis.RunT(t)
	down := c.Addr()
	c.Close()
	lockAndRelease(t, "redis://"+a.Addr()+",redis://"+b.Addr()+"/1,redis://"+down)
	if n, m := len(a.DB(0).Keys()), len(b.DB(1).Keys()); n != 1 || m != 1 {
		t.Errorf("%d and %d keys, want a row on each server", n, m)
	}
}

// TestRedisDefaults: a port that is left out, and a host in brackets.
func TestRedisDefaults(t *testing.T) {
	for name, c := range map[string]struct{ url, want string }{
		"no port":   {"redis://localhost", "Redis localhost:6379"},
		"IPv6":      {"redis://[::1]", "Redis [::1]:6379"},
		"IPv6 port": {"redis://[::1]:1", "Redis [::1]:1"},
		"colon":     {"redis://localhost:/", "Redis localhost:6379"},
		"TLS":       {"rediss://localhost:1", "Redis localhost:1"},
		"capitals":  {"REDIS://localhost:1", "Redis localhost:1"},
		"Valkey":    {"valkey://localhost", "Redis localhost:6379"},
		"Valkey, 2": {"Valkeys://localhost:1", "Redis localhost:1"},
		"socket":    {"unix:///run/redis/redis.sock?db=1", "Redis /run/redis/redis.sock"},
		"quorum":    {"valkey://a,REDIS://b,redis://c", "quorum of 3 Redis servers"},
	} {
		t.Run(name, func(t *testing.T) {
			store := expect.Value(storeurl.Open(t.Context(), c.url))(t)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			var refused *lock.StoreError
			if err := lockerOf(t, store).Check(ctx); !errors.As(err, &refused) || refused.Store != c.want {
				t.Errorf("got %v, want an error of %q", err, c.want)
			}
		})
	}
}

// TestRedisIsAskedOnce shows that each request is sent once: the engine repeats
// it, and counts what was answered.
func TestRedisIsAskedOnce(t *testing.T) {
	s := miniredis.RunT(t)
	var requests atomic.Int32
	s.Server().SetPreHook(func(c *minserver.Peer, command string, _ ...string) bool {
		if command != "EVALSHA" {
			return false
		}
		requests.Add(1)
		c.WriteError("LOADING Redis is loading the dataset in memory")
		return true
	})
	store := expect.Value(storeurl.Open(t.Context(), "redis://"+s.Addr()))(t)
	if err := store.(driver.Checker).Check(t.Context()); err == nil || requests.Load() != 1 {
		t.Errorf("%d requests, error %v, want one that fails", requests.Load(), err)
	}
}

func TestRedisTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "authority.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	expect.Must(t, os.WriteFile(authority, pem.EncodeToMemory(block), 0o600))
	t.Setenv("SSL_CERT_FILE", authority)
	s := miniredis.NewMiniRedis()
	expect.Must(t, s.StartTLS(server.TLS))
	t.Cleanup(s.Close)
	lockAndRelease(t, "rediss://"+s.Addr())
}

func lockerOf(t *testing.T, store driver.Store) *lock.Locker {
	t.Helper()
	locker := expect.Value(lock.New(store, &lock.Options{Logger: slog.New(slog.DiscardHandler)}))(t)
	return locker
}

// lockAndRelease shows that the URL names a store that works.
func lockAndRelease(t *testing.T, url string) {
	t.Helper()
	store := expect.Value(storeurl.Open(t.Context(), url))(t)
	locker := lockerOf(t, store)
	lk := expect.Value(locker.Acquire(t.Context(), lock.Key{Name: t.Name()}))(t)
	if _, err := locker.Acquire(t.Context(), lock.Key{Name: t.Name()}); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a second holder: %v", err)
	}
	expect.OK(t, lk.Release())
}

// TestOfTable: the name of a table comes from a function's variables, and is
// not taken for more.
func TestOfTable(t *testing.T) {
	t.Parallel()
	for table, c := range map[string]struct{ other, want string }{
		"locks": {"", "dynamodb://locks?region=eu-west-1"},
		"Locks": {"dynamodb://other?region=us-east-1&endpoint=http://127.0.0.1:8000", "dynamodb://Locks?endpoint=http%3A%2F%2F127.0.0.1%3A8000&region=eu-west-1"},
		"redis": {"redis://127.0.0.1", "dynamodb://redis?region=eu-west-1"},
		"arn:aws:dynamodb:eu-west-1:123456789012:table/locks": {"dynamodb://other?%zz", "dynamodb://arn:aws:dynamodb:eu-west-1:123456789012:table/locks?region=eu-west-1"},
		"locks?endpoint=http://127.0.0.1:8000":                {}, "": {}, "lo": {}, "locks/": {}, "id@locks": {},
	} {
		got, err := storeurl.OfTable(table, "eu-west-1", c.other)
		if got != c.want || (c.want == "") != errors.As(err, new(*driver.ConfigError)) {
			t.Errorf("%q is at %q, %v; want %q", table, got, err, c.want)
		}
	}
	for text, want := range map[string]string{"": "", "dynamodb://locks": "", "DynamoDB://locks?region=eu-west-1": "eu-west-1", "s3://bucket?region=eu-west-1": ""} {
		if got := storeurl.Region(text); got != want {
			t.Errorf("%q is in %q, want %q", text, got, want)
		}
	}
}
