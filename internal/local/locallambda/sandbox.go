package locallambda

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"time"
)

// drainLimit bounds the wait for what a process sent before it ended: lines in
// its output pipe and requests on its connections. Only a process of its own
// making that it left behind can use it up.
const drainLimit = 500 * time.Millisecond

// sandbox is one process and the Runtime API it sees. Each process has its own
// listener, so that requests of an earlier one can never be taken for its own.
// Platform.mu guards the fields after the blank line.
type sandbox struct {
	p      *Platform
	env    *environment
	cmd    *exec.Cmd
	pid    int
	stream string // the name of its log stream
	output *output
	server *http.Server
	conns  sync.WaitGroup // connections being served

	waiting      []chan *call     // requests for an invocation, held open
	running      map[string]*call // by request id, until the environment is free of it
	ready        bool             // it has asked for an invocation
	used         bool             // it has been given one
	frozen       bool
	killed       bool
	initTimer    *time.Timer
	initTimedOut bool
	initReport   string // what it posted to /runtime/init/error
}

// launch starts a process in an environment. It returns nil without an error
// when the platform is closed.
func (p *Platform) launch(env *environment) (*sandbox, error) {
	fresh, err := p.fresh()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	output, print, err := newOutput(p.logs.of(env.number))
	if err != nil {
		listener.Close()
		return nil, err
	}
	defer print.Close() // the process has its own
	sb := &sandbox{
		p:       p,
		env:     env,
		cmd:     exec.Command(p.cfg.Command[0], p.cfg.Command[1:]...),
		stream:  newLogStream(),
		output:  output,
		running: make(map[string]*call),
	}
	sb.cmd.Env = p.variables(sb.cmd.Path, listener.Addr().String(), sb.stream, fresh)
	sb.cmd.Stdout = print
	sb.cmd.Stderr = print
	ownGroup(sb.cmd)

	// The lock is held across the start so that the process's first request
	// finds it registered, and so that Close either sees it or prevents it.
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		listener.Close()
		output.read.Close()
		return nil, nil
	}
	if err := sb.cmd.Start(); err != nil {
		listener.Close()
		output.read.Close()
		return nil, err
	}
	go output.pump() // ends in wait
	sb.pid = sb.cmd.Process.Pid
	env.sandbox = sb
	sb.initTimer = time.AfterFunc(p.initLimit, sb.endInit)
	p.note(sb, EventStarted, "", "")
	sb.serve(listener)
	return sb, nil
}

// serve answers the process's requests until the server is closed.
func (sb *sandbox) serve(listener net.Listener) {
	sb.server = &http.Server{Handler: sb.routes(), ConnState: func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			sb.conns.Add(1)
		case http.StateClosed:
			sb.conns.Done()
		}
	}}
	sb.p.wg.Go(func() {
		_ = sb.server.Serve(listener) // always returns ErrServerClosed or the loss of the listener
		sb.conns.Wait()
	})
}

// endInit kills a process that has used up its time to initialise.
func (sb *sandbox) endInit() {
	sb.p.mu.Lock()
	defer sb.p.mu.Unlock()
	if !sb.ready {
		sb.initTimedOut = true
		sb.kill()
	}
}

// wait returns how the process ended, after everything it printed and posted
// has been taken in and nothing of its process group is left.
func (sb *sandbox) wait() string {
	_ = sb.cmd.Wait() // its error says less than the process state
	signalGroup(sb.pid, killSignal)
	sb.output.finish()

	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if sb.server.Shutdown(ctx) != nil {
		sb.server.Close()
	}
	return fmt.Sprint(sb.cmd.ProcessState)
}

// canTake reports whether a call may be delivered now. Duplicates of one event
// have one request id, by which an environment could not tell two apart.
func (sb *sandbox) canTake(id string) bool {
	return len(sb.waiting) > 0 && len(sb.running) < sb.p.cfg.Concurrency && sb.running[id] == nil && !sb.killed
}

// idle freezes a classic environment that has nothing to do: "Lambda freezes the
// execution environment when the runtime and each extension have completed and
// there are no pending events". Its request for the next invocation has been
// read in full by then, so stopping it cannot cut the request in two.
func (sb *sandbox) idle() {
	if sb.p.managed() || sb.frozen || sb.killed || sb.p.closed || len(sb.waiting) == 0 || len(sb.running) > 0 {
		return
	}
	signalGroup(sb.pid, freezeSignal)
	sb.frozen = true
	sb.p.note(sb, EventFrozen, "", "")
}

func (sb *sandbox) thaw() {
	sb.used = true
	if !sb.frozen {
		return
	}
	signalGroup(sb.pid, thawSignal)
	sb.frozen = false
	sb.p.note(sb, EventThawed, "", "")
}

// kill ends the process group, frozen or not.
func (sb *sandbox) kill() {
	sb.killed = true
	signalGroup(sb.pid, killSignal)
}

// terminate asks the process group to end. A frozen one has to be running to
// notice.
func (sb *sandbox) terminate() {
	sb.killed = true
	signalGroup(sb.pid, terminateSignal)
	signalGroup(sb.pid, thawSignal)
}
