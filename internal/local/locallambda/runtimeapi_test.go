package locallambda

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
)

// printed collects what the environments of a platform print.
type printed struct {
	mu    sync.Mutex
	lines []string
}

func (p *printed) add(_ int, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
}

func (p *printed) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

func TestAnswersToMisbehaviour(t *testing.T) {
	var out printed
	cfg := config("raw")
	cfg.Logs = out.add
	p, _ := start(t, cfg)
	steps, _ := json.Marshal([]string{
		"POST /invocation/unknown/response {}",
		"POST /invocation/unknown/error {}",
		"GET /invocation/next",
		"POST /init/error {}",
		"GET /nowhere",
		"GET /invocation/ID/response",
		"CUT /invocation/ID/response",
		"CUT /invocation/ID/error",
		"CUT /init/error",
		"POST /invocation/ID/error not JSON",
		"POST /invocation/ID/response {}",
		"POST /invocation/ID/error {}",
	})
	r := invoke(t, p, Invocation{RequestID: "abc", Payload: steps})
	if r.Outcome != Failed || r.ErrorType != "Header.Type" || r.ErrorMessage != "not JSON" {
		t.Errorf("result %+v", r)
	}
	want := []string{
		`POST /invocation/unknown/response {} -> 400 {"errorMessage":"Invalid request ID","errorType":"InvalidRequestID"}`,
		`POST /invocation/unknown/error {} -> 400 {"errorMessage":"Invalid request ID"`,
		`GET /invocation/next -> 403 {"errorMessage":"State transition is not allowed","errorType":"InvalidStateTransition"}`,
		`POST /init/error {} -> 403`,
		`GET /nowhere -> 404`,
		`GET /invocation/ID/response -> 405`,
		`CUT /invocation/abc/response -> HTTP/1.1 400`,
		`CUT /invocation/abc/error -> HTTP/1.1 400`,
		`CUT /init/error -> HTTP/1.1 400`,
		`POST /invocation/ID/error not JSON -> 202 {"status":"OK"}`,
		`POST /invocation/ID/response {} -> 403`,
		`POST /invocation/ID/error {} -> 403`,
	}
	eventually(t, "all answers", func() bool { return len(out.all()) == len(want) })
	for i, got := range out.all() {
		if !strings.HasPrefix(got, want[i]) {
			t.Errorf("answer %q, want %q", got, want[i])
		}
	}
}
