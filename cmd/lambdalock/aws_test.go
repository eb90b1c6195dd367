package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// account is a DynamoDB that keeps who asked, according to the requests'
// signatures.
type account struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]bool // by the signature's key, Region and session token
}

func newAccount(t *testing.T) *account {
	a := &account{asked: map[string]bool{}}
	table := fakedynamo.New()
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		if part := strings.Split(scope, "/"); len(part) > 2 {
			a.mu.Lock()
			a.asked[part[0]+" "+part[2]+" "+r.Header.Get("X-Amz-Security-Token")] = true
			a.mu.Unlock()
		}
		table.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// TestInvokeUsesTheProfile: the function uses the credentials that create-table
// used.
func TestInvokeUsesTheProfile(t *testing.T) {
	t.Parallel()
	config := file(t, "config", "[default]\nregion=eu-west-1\naws_access_key_id=DEFAULTKEY\naws_secret_access_key=x\n"+
		"[profile work]\nregion=eu-central-1\naws_access_key_id=WORKKEY\naws_secret_access_key=x\naws_session_token=token\n"+
		fmt.Sprintf("[profile process]\nregion=eu-north-1\ncredential_process=%s\n", file(t, "process", "")))
	expect.Must(t, os.WriteFile(processOf(t, config), []byte("#!/bin/sh\necho '{\"Version\":1,\"AccessKeyId\":\"PROCESSKEY\",\"SecretAccessKey\":\"x\",\"SessionToken\":\"short\"}'\n"), 0o600))
	expect.Must(t, os.Chmod(processOf(t, config), 0o700))
	for profile, want := range map[string]string{
		"":        "DEFAULTKEY eu-west-1 ",
		"work":    "WORKKEY eu-central-1 token",
		"process": "PROCESSKEY eu-north-1 short",
	} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			env := []string{"AWS_CONFIG_FILE=" + config, "AWS_ENDPOINT_URL_DYNAMODB=" + a.URL, "LOCK_TABLE_NAME=locks"}
			if profile != "" {
				env = append(env, "AWS_PROFILE="+profile)
			}
			command(t, env, "create-table").Expect(t, 0)
			r := command(t, env, "invoke", "--timeout", "1m", "-c", "2", os.Args[0], s3Event(t, "cat.png"))
			r.Expect(t, 0, `"resized"`, "skipped (completed)")
			if len(a.asked) != 1 || !a.asked[want] {
				t.Errorf("asked as %v, want %q\n%s", a.asked, want, r)
			}
		})
	}
}

// processOf returns the program that a profile of the configuration names.
func processOf(t *testing.T, config string) string {
	t.Helper()
	text := expect.Value(os.ReadFile(config))(t)
	_, program, _ := strings.Cut(string(text), "credential_process=")
	return strings.TrimSpace(program)
}

// TestInvokeWithoutCredentials: the command itself says what is missing, before
// it starts a function.
func TestInvokeWithoutCredentials(t *testing.T) {
	t.Parallel()
	event := s3Event(t, "cat.png")
	command(t, []string{"LOCK_TABLE_NAME=locks"}, "invoke", os.Args[0], event).Expect(t, 1, "AWS_REGION")
	command(t, []string{"LOCK_TABLE_NAME=locks", "AWS_REGION=eu-central-1"}, "invoke", os.Args[0], event).Expect(t, 1, "AWS_PROFILE", "LOCK_TABLE_NAME")
}
