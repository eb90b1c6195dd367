package locallambda

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
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// functions are what the test binary can be as a bootstrap.
var functions = map[string]func(){
	"chatty":     func() { lambda.Start(chatty) },
	"gated":      func() { lambda.Start(gated) },
	"echo":       func() { lambda.Start(func(n number) (number, error) { return n, nil }) },
	"stream":     func() { lambda.Start(stream) },
	"large":      func() { lambda.Start(func() (string, error) { return strings.Repeat("A", 7_000_000), nil }) },
	"variables":  func() { lambda.Start(func() ([]string, error) { return append(os.Environ(), os.Args[1:]...), nil }) },
	"raw":        raw,
	"stubborn":   stubborn,
	"told":       told,
	"untold":     untold,
	"init exit":  func() { fmt.Println("first\nno table name"); os.Exit(3) },
	"init panic": func() { panic("cannot initialise") },
	"init error": func() { postInitError(); hang() },
	"init hang":  hang,
	"flaky":      flaky,
	"held":       held,
	"late":       late,
}

type number struct {
	N int64 `json:"n"`
}

type place struct {
	Gate string `json:"gate"`
}

// enter reports a handler to the gate.
func enter(ctx context.Context, p place) (net.Conn, error) {
	conn, err := net.Dial("tcp", p.Gate)
	if err != nil {
		return nil, err
	}
	lc, _ := lambdacontext.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	return conn, json.NewEncoder(conn).Encode(greeting{lc.AwsRequestID, os.Getpid(), deadline.UnixMilli()})
}

// gated does what it is told at the gate.
func gated(ctx context.Context, p place) (any, error) {
	conn, err := enter(ctx, p)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	order, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return nil, err
	}
	switch strings.TrimSpace(order) {
	case "fail":
		return nil, errors.New("no luck")
	case "panic":
		panic("no way")
	case "exit":
		os.Exit(0)
	}
	return os.Getpid(), nil
}

// pieces is a response that is told at the gate what to yield, line by line.
type pieces struct{ lines *bufio.Reader }

func (p *pieces) Read(b []byte) (int, error) {
	line, err := p.lines.ReadString('\n')
	switch {
	case err != nil:
		return 0, err
	case line == "fail\n":
		return 0, errors.New("the source dried up")
	case line == "end\n":
		return 0, io.EOF
	}
	return copy(b, line), nil
}

func stream(ctx context.Context, p place) (io.Reader, error) {
	conn, err := enter(ctx, p)
	return &pieces{bufio.NewReader(conn)}, err
}

// chatty prints before and after its work, which another process may take
// longer to read than it takes to return.
func chatty(word string) error {
	fmt.Println(word, "begun")
	switch word {
	case "exit":
		os.Exit(1)
	case "flood":
		for n := range 2 * MaxLog {
			fmt.Println("line", n)
		}
	}
	fmt.Println(word, "done")
	return nil
}

// stubborn asks for SIGTERM, and does not heed it.
func stubborn() {
	signal.Ignore(syscall.SIGTERM)
	lambda.StartWithOptions(gated, lambda.WithEnableSIGTERM())
}

// told asks for SIGTERM, and untold takes it if it comes.
func told() { lambda.StartWithOptions(gated, lambda.WithEnableSIGTERM(goodbye)) }

func untold() {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		goodbye()
	}()
	lambda.Start(gated)
}

func goodbye() {
	fmt.Println("goodbye")
	os.Exit(0)
}

// flaky is unable to initialise from the moment the file named by FLAKY exists.
func flaky() {
	if _, err := os.Stat(os.Getenv("FLAKY")); err == nil {
		fmt.Println("the file exists")
		os.Exit(4)
	}
	lambda.Start(gated)
}

// hang never returns; select {} might be reported as a deadlock.
func hang() { time.Sleep(time.Hour) }

// held does not finish its initialisation while the file named by HELD exists.
func held() {
	if _, err := os.Stat(os.Getenv("HELD")); err == nil {
		hang()
	}
	lambda.Start(gated)
}

// late does not finish its initialisation the first time, when the file named
// by LATE exists.
func late() {
	if os.Remove(os.Getenv("LATE")) == nil {
		hang()
	}
	lambda.Start(gated)
}

func runtimeURL(path string) string {
	return "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime" + path
}

func postInitError() {
	body := `{"errorMessage":"bad table","errorType":"Extension.Bad"}`
	resp, err := http.Post(runtimeURL("/init/error"), "application/json", strings.NewReader(body))
	fmt.Println("posted", resp.StatusCode, err)
}

// raw is a runtime that follows the steps in its event, one a line, and prints
// the answers.
func raw() {
	id := ""
	for {
		resp, err := http.Get(runtimeURL("/invocation/next"))
		if err != nil {
			os.Exit(1)
		}
		if id = resp.Header.Get("Lambda-Runtime-Aws-Request-Id"); id == "" {
			os.Exit(2)
		}
		var steps []string
		_ = json.NewDecoder(resp.Body).Decode(&steps) // an empty list shows in the test
		resp.Body.Close()
		for _, step := range steps {
			rawStep(id, step)
		}
	}
}

func rawStep(id, step string) {
	method, rest, _ := strings.Cut(step, " ")
	path, body, _ := strings.Cut(rest, " ")
	if method == "CUT" {
		cutOff(strings.ReplaceAll(path, "ID", id))
		return
	}
	req, _ := http.NewRequest(method, runtimeURL(strings.ReplaceAll(path, "ID", id)), strings.NewReader(body))
	req.Header.Set("Lambda-Runtime-Function-Error-Type", "Header.Type")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(step, err)
		return
	}
	answer, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	fmt.Println(step, "->", resp.StatusCode, strings.TrimSpace(string(answer)))
}

// cutOff posts half a body and waits for what the API says to it.
func cutOff(path string) {
	conn, err := net.Dial("tcp", os.Getenv("AWS_LAMBDA_RUNTIME_API"))
	if err != nil {
		os.Exit(1)
	}
	_, _ = fmt.Fprintf(conn, "POST /2018-06-01/runtime%s HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf", path)
	_ = conn.(*net.TCPConn).CloseWrite()
	status, _ := bufio.NewReader(conn).ReadString('\n')
	conn.Close()
	fmt.Println("CUT", path, "->", strings.TrimSpace(status))
}
