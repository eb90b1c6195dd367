package awsevents_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
)

// TestDocumentDBEvent: only the event says of which cluster its changes are.
func TestDocumentDBEvent(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../testdata/documentdb.json")
	if err != nil {
		t.Fatal(err)
	}
	var e awsevents.DocumentDBEvent
	if err := json.Unmarshal(b, &e); err != nil || len(e.Events) == 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	for i, r := range e.Events {
		if r.Cluster == "" || r.Cluster != e.EventSourceARN {
			t.Errorf("change %d is of cluster %q, want %q", i, r.Cluster, e.EventSourceARN)
		}
	}
	if err := json.Unmarshal([]byte(`{"events":{}}`), &e); err == nil {
		t.Error("events that are not a list are decoded without an error")
	}
}
