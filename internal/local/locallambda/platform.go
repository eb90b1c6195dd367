// Package locallambda runs a Lambda function on this machine, without Docker:
// it serves the Lambda Runtime API (version 2018-06-01) on the loopback
// interface and runs copies of a bootstrap executable as execution
// environments, which it freezes, thaws, times out, kills and restarts as the
// service does.
//
// It follows https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html and
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html.
// Of the Extensions API it has what a runtime needs to be told of its end with
// SIGTERM. It has no other extensions, no Telemetry API and no SnapStart.
package locallambda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

// ErrClosed is the error of every call on a closed platform, and of invocations
// that were under way when it was closed.
var ErrClosed = errors.New("locallambda: the platform is closed")

const (
	defaultTimeout = 3 * time.Second

	// Lambda allows 10 s for the first start of an on-demand environment. On a
	// Lambda Managed Instance it is the larger of 130 s and the function's
	// timeout, up to 900 s; see
	// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html
	initLimit        = 10 * time.Second
	managedInitLimit = 130 * time.Second

	// Lambda sends SIGKILL about this long after SIGTERM when only an internal
	// extension is registered, and without one immediately:
	// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html#runtimes-lifecycle-shutdown
	shutdownGrace = 500 * time.Millisecond
)

// Config says what to run and how. Only Command is required.
type Config struct {
	// Command is the bootstrap and its arguments. It runs in the working
	// directory of the calling process.
	Command []string

	// Env holds "K=V" pairs that are added to the calling process's environment
	// and to the variables that Lambda sets. They win over both, except
	// AWS_LAMBDA_RUNTIME_API.
	Env []string

	// Credentials returns further "K=V" pairs, which win over Env. It is called
	// before each start of a process, by several goroutines at the same time, so
	// that each process gets credentials that have not expired. If it fails, so
	// does the environment's initialisation. Nil adds nothing.
	Credentials func() ([]string, error)

	// Environments is the number of execution environments; zero means 1.
	Environments int

	// Concurrency is how many invocations each environment handles at the same
	// time; zero means 1, which is classic Lambda. More than 1 stands for Lambda
	// Managed Instances: the environments are never frozen, and an invocation that
	// passes its deadline is reported as timed out while the process goes on.
	Concurrency int

	// Timeout is the function's timeout; zero means 3 s, as in Lambda.
	Timeout time.Duration

	// LivesOn lets the process of a classic environment go on after the deadline
	// of its invocation; its late answer changes nothing, and only then it takes
	// another invocation. So the teams of the runtimes describe it; the
	// documentation says that Lambda ends the process, as without this option:
	// https://github.com/aws/aws-lambda-rust-runtime/pull/1159
	// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
	LivesOn bool

	// Function is the function's name; empty means the base name of Command[0].
	Function string

	// Tenant is the tenant whose environments these are, as with tenant isolation:
	// https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation.html
	// Empty: none.
	Tenant string

	// Logs receives each line that an environment prints to stdout or stderr,
	// without the line break. Calls never overlap. Nil writes the lines to the
	// calling process's stderr, each after its environment's number.
	Logs func(env int, line string)

	// observe receives each event under Platform.mu, for tests; nil: none.
	observe func(event)
}

// Platform runs the execution environments of one function. Start returns one.
// It is safe for concurrent use.
type Platform struct {
	cfg       Config
	initLimit time.Duration // a test does not wait as long as Lambda
	closing   chan struct{}
	wg        sync.WaitGroup
	printing  sync.Mutex // held during calls of Config.Logs

	mu     sync.Mutex // guards what follows and the state of all environments
	envs   []*environment
	queue  []*call // invocations that wait for an environment, oldest first
	closed bool
}

// Start starts all environments and waits until each has asked for its first
// invocation. If one of them ends, reports an error, or does not ask within
// Lambda's limit for the Init phase (10 s; 130 s or more with Concurrency above
// 1) nor, in a second try that Concurrency above 1 does not have, within the
// function's timeout, Start closes the platform and returns an error that
// includes the last lines that the environment printed. The context bounds the
// start only; Close ends the platform.
func Start(ctx context.Context, cfg Config) (*Platform, error) {
	p, err := newPlatform(cfg)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func newPlatform(cfg Config) (*Platform, error) {
	if err := complete(&cfg); err != nil {
		return nil, err
	}
	p := &Platform{cfg: cfg, initLimit: initLimit, closing: make(chan struct{})}
	if p.managed() {
		p.initLimit = max(managedInitLimit, min(cfg.Timeout, invocation.LongestOnDemand))
	}
	for n := range cfg.Environments {
		p.envs = append(p.envs, &environment{number: n + 1, first: make(chan error, 1)})
	}
	return p, nil
}

// complete checks a configuration and fills in its defaults.
func complete(cfg *Config) error {
	if platformUnsupported != nil {
		return platformUnsupported
	}
	if len(cfg.Command) == 0 {
		return errors.New("locallambda: Config.Command is empty: name the bootstrap executable")
	}
	if cfg.Environments < 0 || cfg.Concurrency < 0 || cfg.Timeout < 0 {
		return errors.New("locallambda: Environments, Concurrency and Timeout of Config must not be negative")
	}
	for _, pair := range cfg.Env {
		if strings.Index(pair, "=") < 1 {
			return fmt.Errorf("locallambda: Config.Env has %q, which is not of the form K=V", pair)
		}
	}
	if cfg.Logs == nil {
		cfg.Logs = func(env int, line string) { fmt.Fprintf(os.Stderr, "[%d] %s\n", env, line) }
	}
	if cfg.Credentials == nil {
		cfg.Credentials = func() ([]string, error) { return nil, nil }
	}
	cfg.Environments = max(cfg.Environments, 1)
	cfg.Concurrency = max(cfg.Concurrency, 1)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Function = cmp.Or(cfg.Function, filepath.Base(cfg.Command[0]))
	return nil
}

func (p *Platform) start(ctx context.Context) error {
	for _, env := range p.envs {
		p.wg.Go(func() { p.keep(env) })
	}
	for _, env := range p.envs {
		select {
		case err := <-env.first:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("locallambda: environment %d is still initialising: %w", env.number, context.Cause(ctx))
		}
	}
	return nil
}

// managed reports whether the environments are Lambda Managed Instances.
func (p *Platform) managed() bool { return p.cfg.Concurrency > 1 }

// Kill sends SIGKILL to an environment's process group, frozen or not. What it
// was handling ends as Crashed, and a new process takes its place. Kill returns
// an error if there is no such environment, or if it has no process at the
// moment because it is being restarted.
func (p *Platform) Kill(env int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if env < 1 || env > len(p.envs) {
		return fmt.Errorf("locallambda: there is no environment %d: they are numbered 1 to %d", env, len(p.envs))
	}
	proc := p.envs[env-1].process
	if proc == nil {
		return fmt.Errorf("locallambda: environment %d has no process at the moment", env)
	}
	proc.kill()
	return nil
}

// Close ends all environments, and returns when their processes are gone and
// their listeners closed. Those that have registered an extension get SIGTERM,
// and half a second later SIGKILL. Invocations under way return ErrClosed.
// Closing again does nothing; the error is always nil.
func (p *Platform) Close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
		for _, c := range p.queue {
			c.letReturn(ErrClosed)
		}
		p.queue = nil
		for _, env := range p.envs {
			if env.process != nil {
				env.process.end()
			}
		}
	}
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}
