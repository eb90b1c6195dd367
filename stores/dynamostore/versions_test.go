package dynamostore_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestSimulationOfTwoVersions plays histories in which half of the clients are
// of a later version that knows one attribute more, and writes it with each
// update. This version understands such rows, and leaves the attribute alone.
func TestSimulationOfTwoVersions(t *testing.T) { // F65
	t.Parallel()
	c := simulation.Config{Histories: 10, Share: 20}
	if testing.Short() {
		c.Histories = 4
	}
	simulation.Faults(t, func(t *testing.T, h *simulation.History) func(uint64) driver.Store {
		later := &laterVersion{Server: fakedynamo.New(), updated: map[string]bool{}}
		t.Cleanup(func() { later.check(t) })
		this, other := openTableOf(t, h, later.Server), openTableOf(t, h, later)
		return func(id uint64) driver.Store {
			if id%2 == 1 {
				return other(id)
			}
			return this(id)
		}
	}, c)
}

// laterVersion is the server as clients of a later version use it: each of
// their updates also sets an attribute that this version does not know.
type laterVersion struct {
	*fakedynamo.Server

	mu      sync.Mutex
	updated map[string]bool // rows that got it
}

func (v *laterVersion) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") {
		v.Server.ServeHTTP(w, r)
		return
	}
	var in map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		panic(err)
	}
	in["UpdateExpression"] = strings.Replace(in["UpdateExpression"].(string), "SET ", "SET addedLater = :addedLater, ", 1)
	in["ExpressionAttributeValues"].(map[string]any)[":addedLater"] = map[string]string{"N": "1"}
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	v.Server.ServeHTTP(w, r)
	name := in["Key"].(map[string]any)["lock"].(map[string]any)["S"].(string)
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.updated[name] && v.Item(table, name)["addedLater"] != nil {
		v.updated[name] = true
	}
}

// check checks that no client of this version has removed the attribute.
func (v *laterVersion) check(t *testing.T) {
	if len(v.updated) == 0 {
		t.Error("no client of the later version wrote anything")
	}
	for name := range v.updated {
		if row := v.Item(table, name); row["addedLater"] == nil {
			t.Errorf("the row of %s has lost what a later version wrote: %v", name, row)
		}
	}
}
