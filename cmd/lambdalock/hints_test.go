package main

import (
	"strings"
	"testing"
)

// TestHintsForAShell: a store that cannot be reached from a shell is not
// explained with the network of a function.
func TestHintsForAShell(t *testing.T) {
	t.Parallel()
	const store = "redis://127.0.0.1:1"
	for _, args := range [][]string{
		{"exec", "--store", store, "--key", "k", "--", "true"},
		{"list", "--store", store},
	} {
		r := command(t, nil, args...)
		r.Expect(t, 69, "check host and port")
		if strings.Contains(r.Stderr, "VPC") || strings.Contains(r.Stderr, "client's options") {
			t.Errorf("%s", r)
		}
	}
}

// TestExplainSaysWhoseFunctions: the key functions of a program are not known
// to explain.
func TestExplainSaysWhoseFunctions(t *testing.T) {
	t.Parallel()
	const own = "For a key function of your own, give what it returns: lambdalock explain --name NAME --event EVENT"
	message := file(t, "message.json", `{"Records":[{"messageId":"m","eventSourceARN":"arn:aws:sqs:eu-west-1:1:q","eventSource":"aws:sqs","body":"{}"}]}`)
	explained := command(t, nil, "explain", message)
	explained.Expect(t, 0, "SQSMessage", own)
	if before, _, _ := strings.Cut(explained.Stdout, own); strings.Contains(before, "SQSMessage") {
		t.Errorf("the hint is not first: %s", explained)
	}
	for _, args := range [][]string{{s3Event(t, "cat.png")}, {"--name", "k"}} {
		if r := command(t, nil, append([]string{"explain"}, args...)...); strings.Contains(r.Stdout, own) {
			t.Errorf("%q: %s", args, r)
		}
	}
}
