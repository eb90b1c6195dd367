//go:build unix

package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/aws/aws-lambda-go/lambda"
)

// A bootstrap is told by its environment how to begin, and where the test waits
// for what it sees.
const (
	beginVariable = "LAMBDALOCK_TEST_BEGIN" // a key of beginnings; empty: as most functions
	gateVariable  = "LAMBDALOCK_TEST_GATE"
)

// sight is a line of a bootstrap: what it sees.
type sight struct {
	What    string              // "begun", of a process; "invoked"; "terminated"; a step of a raw runtime; "ended"
	Environ []string            `json:",omitempty"`
	Header  map[string][]string `json:",omitempty"` // of the event, for a raw runtime
	Answer  string              `json:",omitempty"` // to a raw runtime: its status and error type
}

// order is an event: what the handler shall do, or a raw runtime, step by step.
type order struct {
	Do    string
	Size  int      `json:",omitempty"`
	Steps []string `json:",omitempty"`
}

// gate is the connection of a bootstrap to its test.
type gate struct {
	mu   sync.Mutex
	conn net.Conn
	say  *json.Encoder
	open *bufio.Scanner
}

func (g *gate) tell(s sight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.say.Encode(s) != nil {
		os.Exit(1) // the test is over
	}
}

// wait returns when the test lets the bootstrap go on.
func (g *gate) wait() {
	if !g.open.Scan() {
		os.Exit(1)
	}
}

// bootstrap is the part of a child that is a function in Lambda, or in what
// stands for it.
func bootstrap(task) error {
	conn, err := net.Dial("tcp", os.Getenv(gateVariable))
	if err != nil {
		return err
	}
	g := &gate{conn: conn, say: json.NewEncoder(conn), open: bufio.NewScanner(conn)}
	g.tell(sight{What: "begun", Environ: os.Environ()})
	beginnings[os.Getenv(beginVariable)](g)
	return nil
}

var beginnings = map[string]func(*gate){
	"":     func(g *gate) { lambda.Start(g.handle) },
	"exit": func(*gate) { os.Exit(3) },
	"error": func(*gate) {
		fmt.Fprintln(os.Stderr, postRuntime("init/error", `{"errorMessage":"no table","errorType":"Function.NoTable"}`))
		os.Exit(1)
	},
	"terminable": func(g *gate) {
		lambda.StartWithOptions(g.handle, lambda.WithEnableSIGTERM(func() { g.tell(sight{What: "terminated"}) }))
	},
	"notified": func(g *gate) {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		go func() {
			<-terminated
			g.tell(sight{What: "terminated"})
		}()
		lambda.Start(g.handle)
	},
	"raw": runRaw,
}

// ownError has a type whose name the invoker gets.
type ownError struct{ reason string }

func (e *ownError) Error() string { return e.reason }

// endings are the ways in which the handler fails.
var endings = map[string]func() error{
	"fail":        func() error { return errors.New("no luck") },
	"fail, own":   func() error { return &ownError{"no luck"} },
	"wrap":        func() error { return fmt.Errorf("at work: %w", &ownError{"no luck"}) },
	"join":        func() error { return errors.Join(&ownError{"no luck"}, io.EOF) },
	"panic":       func() error { panic("no way") },
	"panic, own":  func() error { panic(&ownError{"no way"}) },
	"exit 0":      func() error { os.Exit(0); return nil },
	"exit 1":      func() error { os.Exit(1); return nil },
	"goexit":      func() error { runtime.Goexit(); return nil },
	"kill":        func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	"nil pointer": func() error { var e *ownError; return errors.New(e.reason) },
}

func (g *gate) handle(_ context.Context, o order) (any, error) {
	g.tell(sight{What: "invoked"})
	if end := endings[o.Do]; end != nil {
		return nil, end()
	}
	switch o.Do {
	case "wait":
		g.wait()
	case "size":
		return strings.Repeat("A", o.Size-len(`""`)), nil
	case "stream":
		return strings.NewReader(strings.Repeat("A", o.Size)), nil
	case "stream, fail":
		return io.MultiReader(strings.NewReader("half"), failing{}), nil
	case "channel":
		return make(chan int), nil
	}
	return "done", nil
}

// failing is a response whose source fails.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, &ownError{"dried up"} }

// runRaw is a runtime that takes the steps of its events, and tells the
// answers.
func runRaw(g *gate) {
	for {
		resp, err := http.Get(runtimeAPI("2018-06-01/runtime/invocation/next"))
		if err != nil {
			return
		}
		var o order
		_ = json.NewDecoder(resp.Body).Decode(&o) // an empty order shows in the test
		resp.Body.Close()
		g.tell(sight{What: "invoked", Header: resp.Header})
		id := resp.Header.Get("Lambda-Runtime-Aws-Request-Id")
		for _, step := range o.Steps {
			if step == "wait" {
				g.wait()
				continue
			}
			path, body, _ := strings.Cut(strings.ReplaceAll(step, "ID", id), " ")
			g.tell(sight{What: step, Answer: postRuntime(path, body)})
		}
	}
}

// postRuntime posts to the Runtime API and returns status and error type of the
// answer.
func postRuntime(path, body string) string {
	if !strings.HasPrefix(path, "20") {
		path = "2018-06-01/runtime/" + path
	}
	req, err := http.NewRequest(http.MethodPost, runtimeAPI(path), strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Lambda-Extension-Name", "inside")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var refusal struct{ ErrorType string }
	_ = json.NewDecoder(resp.Body).Decode(&refusal) // what is missing shows in the test
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", refusal.ErrorType))
}

func runtimeAPI(path string) string {
	return "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/" + path
}
