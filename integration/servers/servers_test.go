package servers

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	if _, _, err := Open(t.Context(), "oracle"); err == nil || !strings.Contains(err.Error(), "azure, dynamodb-local, dynoxide, moto, redis, s3, valkey") {
		t.Errorf("got error %v, want one that lists the servers", err)
	}
	s := Redis(t) // skips the test if there is none
	s.Kill()
	s, closeServer, err := Open(t.Context(), "redis")
	if err != nil {
		t.Fatal(err)
	}
	data := s.instance.data
	closeServer()
	if !s.instance.proc.exited() || exists(data) {
		t.Errorf("after closing, the server has ended: %v, its folder is there: %v", s.instance.proc.exited(), exists(data))
	}
}

// TestFreePort: nobody who asks the system for any port gets that of a server
// before the server takes it.
func TestFreePort(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		port, err := freePort()
		if err != nil || seen[port] {
			t.Fatalf("port %s a second time, or error %v", port, err)
		}
		seen[port] = true
		if n, err := strconv.Atoi(port); err != nil || n < 1024 || n >= 32768 {
			t.Fatalf("port %s is one that systems give to anybody", port)
		}
	}
	next := fmt.Sprint(firstPort + (portsBegin+portsGiven.Load()+1)%ports)
	if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", next)); err == nil { // else somebody has it already
		defer l.Close()
	}
	if port, err := freePort(); err != nil || port == next {
		t.Errorf("port %s, which is taken, or error %v", port, err)
	}
}
