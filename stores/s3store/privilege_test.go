package s3store_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// TestCallsAreThoseShipped runs the conformance suite and compares the actions
// that its requests need with those of the policies that are documented, and
// checks that no request leaves the prefix.
func TestCallsAreThoseShipped(t *testing.T) { // F40
	server, client := newServer(t)
	store := s3store.New(client, bucket, "rows")
	t.Run("suite", func(t *testing.T) {
		locktest.Run(t, locktest.Harness{Open: func(*testing.T) driver.Store { return store }, Advance: func(d time.Duration) { server.advance(d) }})
	})
	if err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, request := range server.requests() {
		method, rest, _ := strings.Cut(request, " ")
		path, _, _ := strings.Cut(rest, " ")
		switch {
		case method == "GET" && strings.TrimSuffix(path, "/") == "/"+bucket:
			needed["s3:ListBucket"] = true
		case !strings.HasPrefix(path, "/"+bucket+"/rows/"):
			t.Errorf("the request %s is not for the prefix", request)
		case method == "GET":
			needed["s3:GetObject"] = true
		case method == "PUT":
			needed["s3:PutObject"] = true
		default:
			t.Errorf("the request %s needs another action", request)
		}
	}
	want := slices.Sorted(maps.Keys(needed))
	for path, pattern := range map[string]string{"doc.go": `"Action": (.*)`, "../../docs/STORES.md": `(?m)^\| S3 \| (.s3:.*)$`} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		allowed := map[string]bool{}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			for _, action := range regexp.MustCompile(`s3:\w+`).FindAllString(m[1], -1) {
				allowed[action] = true
			}
		}
		if got := slices.Sorted(maps.Keys(allowed)); !slices.Equal(got, want) {
			t.Errorf("the suite needs %q, but %s allows %q", want, path, got)
		}
	}
}
