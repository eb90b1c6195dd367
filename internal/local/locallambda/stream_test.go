package locallambda

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestStreamArrivesWhileTheHandlerStillReads(t *testing.T) {
	p, _ := start(t, config("stream"))
	g := newGate(t)
	reader, writer := io.Pipe()
	result := background(t, p, Invocation{Payload: g.event(), Stream: writer})
	v := g.next(t)
	for _, piece := range []string{"one\n", "two\n", "three\n"} {
		_, _ = io.WriteString(v.conn, piece)
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(reader, got); err != nil || string(got) != piece {
			t.Fatalf("%q arrived as %q, %v", piece, got, err)
		}
	}
	v.tell(t, "end")
	r := receive(t, result, "result")
	if r.Outcome != Succeeded || string(r.Payload) != "one\ntwo\nthree\n" || r.ContentType != "application/octet-stream" {
		t.Errorf("result %+v", r)
	}
}

func TestErrorTrailersFailTheInvocation(t *testing.T) {
	p, _ := start(t, config("stream"))
	g := newGate(t)
	var streamed strings.Builder
	result := background(t, p, Invocation{Payload: g.event(), Stream: &streamed})
	v := g.next(t)
	v.tell(t, "so far so good")
	v.tell(t, "fail")
	r := receive(t, result, "result")
	if r.Outcome != Failed || r.ErrorType != "errorString" || r.ErrorMessage != "the source dried up" {
		t.Errorf("result %+v", r)
	}
	if streamed.String() != "so far so good\n" {
		t.Errorf("streamed %q", streamed.String())
	}
	// The environment goes on, as after any error that is not a panic.
	result = background(t, p, Invocation{Payload: g.event()})
	again := g.next(t)
	again.tell(t, "end")
	if r := receive(t, result, "result"); r.Outcome != Succeeded || again.PID != v.PID {
		t.Errorf("process %d after %d: %+v", again.PID, v.PID, r)
	}
}

func TestCrashInMidStream(t *testing.T) {
	p, _ := start(t, config("stream"))
	g := newGate(t)
	reader, writer := io.Pipe()
	result := background(t, p, Invocation{Payload: g.event(), Stream: writer})
	v := g.next(t)
	v.tell(t, "half")
	expect.Value(io.ReadFull(reader, make([]byte, 5)))(t)
	expect.Must(t, p.Kill(1))
	if r := receive(t, result, "result"); r.Outcome != Crashed {
		t.Errorf("result %+v", r)
	}
}

type brokenWriter struct{ writes int }

func (w *brokenWriter) Write([]byte) (int, error) {
	w.writes++
	return 0, errors.New("broken")
}

func TestBrokenStreamIsLeftAlone(t *testing.T) {
	p, _ := start(t, config("large"))
	w := &brokenWriter{}
	r := invoke(t, p, Invocation{Stream: w})
	// Without the limit, as the response is streamed.
	if r.Outcome != Succeeded || len(r.Payload) != 7_000_002 || w.writes != 1 {
		t.Errorf("%s with %d bytes and %d writes", r.Outcome, len(r.Payload), w.writes)
	}
}
