package locallambda

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"time"
)

// drainLimit bounds the wait for requests that a process sent before it ended.
const drainLimit = 500 * time.Millisecond

// process is one process of an environment, and the Runtime API that it sees.
// Each has its own listener, so that a request of an earlier process is never
// taken for one of its own. Platform.mu guards the fields after the blank line.
type process struct {
	p      *Platform
	env    *environment
	cmd    *exec.Cmd
	pid    int
	stream string // the name of its log stream
	output *output
	server *http.Server

	waiting      []chan *call     // requests for an invocation, held open
	running      map[string]*call // by request id, until the environment is free of it
	ready        bool             // it has asked for an invocation
	used         bool             // it has been given one
	frozen       bool
	killed       bool
	extended     bool // it has registered an extension
	initTimer    *time.Timer
	initTimedOut bool
	repeated     time.Time     // when it began an initialisation that was late before; zero: it is the first try
	spent        time.Duration // by that try, of the time of its first invocation
	initReport   string        // what it posted to /runtime/init/error
}

// launch starts a process in an environment. It returns nil without an error
// if the platform is closed.
func (p *Platform) launch(env *environment) (*process, error) {
	credentials, err := p.cfg.Credentials()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	output, err := newOutput(newLines(func(line string) { p.print(env.number, line) }))
	if err != nil {
		listener.Close()
		return nil, err
	}
	proc := &process{
		p:       p,
		env:     env,
		cmd:     exec.Command(p.cfg.Command[0], p.cfg.Command[1:]...),
		stream:  newLogStream(),
		output:  output,
		running: make(map[string]*call),
	}
	proc.cmd.Env = append(p.variables(proc.cmd.Path, proc.stream), credentials...)
	proc.cmd.Env = append(proc.cmd.Env, "AWS_LAMBDA_RUNTIME_API="+listener.Addr().String())
	proc.cmd.Stdout, proc.cmd.Stderr = output.write, output.write
	ownGroup(proc.cmd)
	if started, err := proc.start(); !started {
		listener.Close()
		output.close()
		return nil, err
	}
	proc.server = &http.Server{Handler: proc.routes()}
	p.wg.Go(func() { _ = proc.server.Serve(listener) }) // ends in wait
	return proc, nil
}

// start starts the process, unless the platform is closed. It holds the lock
// meanwhile, so that the process's first request finds it registered, and so
// that Close either sees it or prevents it.
func (proc *process) start() (bool, error) {
	p := proc.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, nil
	}
	if err := proc.cmd.Start(); err != nil {
		return false, err
	}
	go proc.output.pump() // ends in wait
	proc.pid = proc.cmd.Process.Pid
	proc.env.process = proc
	limit := p.initLimit
	if proc.env.late {
		proc.env.late, proc.repeated, limit = false, time.Now(), p.cfg.Timeout
	}
	proc.initTimer = time.AfterFunc(limit, proc.endInit)
	p.note(proc, eventStarted, "", "")
	return true, nil
}

// endInit kills a process that has used up its time to initialise.
func (proc *process) endInit() {
	proc.p.mu.Lock()
	defer proc.p.mu.Unlock()
	if !proc.ready {
		proc.initTimedOut = true
		proc.kill()
	}
}

// isLate reports whether the process was ended with the Init phase. Lambda then
// repeats the initialisation at the first invocation, in the function's
// timeout:
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
// Here it does so immediately, and the first invocation has the rest of the
// time. A Lambda Managed Instance has no second try.
func (proc *process) isLate() bool {
	return proc.initTimedOut && proc.initReport == "" && proc.repeated.IsZero() && !proc.p.managed()
}

// wait returns how the process ended, after everything it printed and posted
// has been read and nothing of its process group is left.
func (proc *process) wait() string {
	_ = proc.cmd.Wait() // its error says less than the process state
	signalGroup(proc.pid, killSignal)
	proc.output.finish()

	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if proc.server.Shutdown(ctx) != nil {
		proc.server.Close()
	}
	return fmt.Sprint(proc.cmd.ProcessState)
}

// canTake reports whether a call may be delivered now. Duplicates of one event
// have the same request id, so an environment could not tell two of them apart.
func (proc *process) canTake(id string) bool {
	return len(proc.waiting) > 0 && len(proc.running) < proc.p.cfg.Concurrency && proc.running[id] == nil && !proc.killed
}

// idle freezes a classic environment that has nothing to do: "Lambda freezes
// the execution environment when the runtime and each extension have completed
// and there are no pending events". Its request for the next invocation has
// been read in full by then, so stopping it cannot cut the request in two.
func (proc *process) idle() {
	if proc.p.managed() || proc.frozen || proc.killed || proc.p.closed || len(proc.waiting) == 0 || len(proc.running) > 0 {
		return
	}
	signalGroup(proc.pid, freezeSignal)
	proc.frozen = true
	proc.p.note(proc, eventFrozen, "", "")
}

func (proc *process) thaw() {
	if !proc.frozen {
		return
	}
	signalGroup(proc.pid, thawSignal)
	proc.frozen = false
	proc.p.note(proc, eventThawed, "", "")
}

// kill ends the process group, frozen or not.
func (proc *process) kill() {
	proc.killed = true
	signalGroup(proc.pid, killSignal)
}

// end is kill, unless the process has asked to be told with SIGTERM. A frozen
// one has to be running to notice.
func (proc *process) end() {
	if !proc.extended {
		proc.kill()
		return
	}
	proc.killed = true
	signalGroup(proc.pid, terminateSignal)
	signalGroup(proc.pid, thawSignal)
	time.AfterFunc(shutdownGrace, func() {
		proc.p.mu.Lock()
		defer proc.p.mu.Unlock()
		if proc.env.process == proc { // else its number may be another's
			proc.kill()
		}
	})
}
