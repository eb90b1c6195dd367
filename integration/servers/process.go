package servers

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"time"
)

// errExited is the error of a server that ended by itself.
var errExited = errors.New("server exited")

// process is a started server.
type process struct {
	cmd    *exec.Cmd
	output *tail
	done   chan struct{} // closed once the process has been reaped
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, output: &tail{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.WaitDelay = time.Second
	dieWithParent(cmd)
	started := make(chan error)
	go func() {
		// The system kills the child with the thread that started it, so that
		// thread has to live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			// The outcome is in cmd.ProcessState.
			_ = cmd.Wait()
		}
	}()
	return p, <-started
}

// stop ends the process and waits until it is gone.
func (p *process) stop() {
	// Killing fails only for a process that has ended already.
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// failure describes how a process exited.
func (p *process) failure() error {
	return fmt.Errorf("%w (%v), its last output:\n%s", errExited, p.cmd.ProcessState, p.output)
}

// wait returns when the server is ready.
func (p *process) wait(ready func() bool, limit time.Duration) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(limit)
	for {
		select {
		case <-p.done:
			return p.failure()
		case <-deadline:
			return fmt.Errorf("no answer within %v, last output:\n%s", limit, p.output)
		case <-poll.C:
			if ready() {
				return nil
			}
		}
	}
}

// answersHTTP reports whether there is any HTTP answer from the address.
func answersHTTP(address string) bool {
	client := http.Client{
		Timeout:   time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	resp, err := client.Get("http://" + address)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}
