//go:build unix

package integration_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// lane is what plays a bootstrap.
type lane string

const (
	emulator        lane = "AWS's emulator"
	managedEmulator lane = "AWS's emulator, managed"
	ours            lane = "ours"
	managedOurs     lane = "ours, managed"
)

var lanes = []lane{emulator, managedEmulator, ours, managedOurs}

func (l lane) managed() bool { return l == managedEmulator || l == managedOurs }

// The request that the tests send where it takes these.
const (
	sentTenant   = "blue"
	sentClient   = `{"custom":{"a":"b"}}`
	sentIdentity = `{"cognitoIdentityId":"i","cognitoIdentityPoolId":"p"}`
)

// stagePatience bounds every wait for a bootstrap; none should come near it.
const stagePatience = 30 * time.Second

// stage is a bootstrap that plays on a lane.
type stage struct {
	t      *testing.T
	invoke func(order) string // returns the answer, in one line
	end    func()             // ends the lane in order
	kill   func()             // and an emulator like a power cut
	sights chan sight
	gate   net.Listener
	mu     sync.Mutex
	conns  []*net.TCPConn
	open   sync.WaitGroup
}

// newStage starts a bootstrap that begins so.
func newStage(t *testing.T, l lane, begin string, timeout time.Duration) *stage {
	t.Helper()
	s := &stage{t: t, sights: make(chan sight, 1000), gate: expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)}
	s.open.Go(s.accept)
	t.Cleanup(s.close)
	env := []string{
		roleVariable + "=bootstrap", taskVariable + "={}", gateVariable + "=" + s.gate.Addr().String(), beginVariable + "=" + begin,
	}
	switch l {
	case emulator, managedEmulator:
		s.onEmulator(l, append(env, "AWS_LAMBDA_FUNCTION_NAME=played", fmt.Sprintf("AWS_LAMBDA_FUNCTION_TIMEOUT=%.0f", timeout.Seconds())))
	default:
		s.onOurs(l, locallambda.Config{Env: env, Timeout: timeout, Function: "played"})
	}
	return s
}

func (s *stage) onEmulator(l lane, env []string) {
	start := servers.LambdaEmulator
	if l.managed() {
		start, env = servers.ManagedLambdaEmulator, append(env, "AWS_LAMBDA_MAX_CONCURRENCY=2")
	}
	server := start(s.t, env, os.Args[0])
	s.invoke = func(o order) string {
		return answerLine(request(server.Endpoint+"/2015-03-31/functions/function/invocations", o))
	}
	s.end = func() { expect.OK(s.t, server.Terminate()) }
	s.kill = server.Kill
}

// request invokes as a client of the emulator does.
func request(url string, o order) ([]byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	req.Close = true
	req.Header.Set("X-Amz-Tenant-Id", sentTenant)
	req.Header.Set("X-Amz-Client-Context", base64.StdEncoding.EncodeToString([]byte(sentClient)))
	req.Header.Set("X-Amz-Cognito-Identity", sentIdentity)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func (s *stage) onOurs(l lane, cfg locallambda.Config) {
	cfg.Command, cfg.Tenant, cfg.Logs = []string{os.Args[0]}, sentTenant, func(int, string) {}
	if l.managed() {
		cfg.Concurrency = 2
	}
	p, err := locallambda.Start(s.t.Context(), cfg)
	if err != nil {
		s.invoke = func(order) string { return answerLine(nil, err) }
		return
	}
	s.end = func() { expect.OK(s.t, p.Close()) }
	s.t.Cleanup(s.end)
	s.invoke = func(o order) string {
		text, err := json.Marshal(o)
		if err != nil {
			return answerLine(nil, err)
		}
		r, err := p.Invoke(context.Background(), locallambda.Invocation{Payload: text})
		return answerLine(r.Payload, err)
	}
}

// answerLine is an answer in one line: of an error its type and its message,
// without the request's id, and of what is long its length.
func answerLine(answer []byte, err error) string {
	var document struct{ ErrorType, ErrorMessage string }
	switch {
	case err != nil:
		text, _, _ := strings.Cut(err.Error(), ";") // the output of the process
		return text
	case json.Unmarshal(answer, &document) == nil && document.ErrorType != "":
		message := document.ErrorMessage
		if _, after, found := strings.Cut(message, " Error: "); found && strings.HasPrefix(message, "RequestId: ") {
			message = after
		}
		return document.ErrorType + ": " + message
	case len(answer) > 1000:
		return fmt.Sprint(len(answer), " bytes")
	}
	return string(answer)
}

// accept takes the connections of bootstraps, until close.
func (s *stage) accept() {
	for {
		conn, err := s.gate.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn.(*net.TCPConn))
		s.mu.Unlock()
		s.open.Go(func() {
			for lines := json.NewDecoder(conn); ; {
				var got sight
				if lines.Decode(&got) != nil {
					s.sights <- sight{What: "ended"}
					return
				}
				s.sights <- got
			}
		})
	}
}

// next returns the next sight.
func (s *stage) next() sight {
	s.t.Helper()
	select {
	case got := <-s.sights:
		return got
	case <-time.After(stagePatience):
		s.t.Fatalf("nothing to see for %v", stagePatience)
		panic("unreachable")
	}
}

// await returns the next sight of a kind, passing over others.
func (s *stage) await(what string) sight {
	s.t.Helper()
	for {
		if got := s.next(); got.What == what {
			return got
		}
	}
}

// letGo lets the first bootstrap go on.
func (s *stage) letGo() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.conns[0].Write([]byte("go\n"))
	expect.OK(s.t, err)
}

// awaitEnd waits for the end of the first bootstrap, and reports whether it got
// SIGTERM.
func (s *stage) awaitEnd() (terminated bool) {
	s.t.Helper()
	for {
		switch got := s.next(); got.What {
		case "terminated":
			terminated = true
		case "ended":
			return terminated
		}
	}
}

// close runs after the lane has ended, an emulator with SIGKILL. Nothing that
// it started may be left, also not in the middle of a handler.
func (s *stage) close() {
	_ = s.gate.Close()
	s.mu.Lock()
	for _, conn := range s.conns {
		_ = conn.CloseWrite() // ends who waits to go on
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.open.Wait() // each connection ends with its process
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(stagePatience):
		s.t.Error("a process is left")
	}
}
