// Package locallambda is AWS Lambda's execution side on one machine, without
// Docker: it serves the Lambda Runtime API (version 2018-06-01) on the loopback
// interface and runs copies of a bootstrap executable as execution
// environments, which it freezes, thaws, times out, kills and restarts as the
// service does.
//
// It follows https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html and
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html.
// Extensions, the Telemetry API and SnapStart are left out.
package locallambda

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrClosed is returned by calls on a platform that has been closed, and by
// invocations that were under way when it was.
var ErrClosed = errors.New("locallambda: the platform is closed")

const (
	defaultTimeout = 3 * time.Second

	// Lambda allows 10 s for the first start of an on-demand environment, and
	// 130 s for one of a Lambda Managed Instance (see
	// lambda-managed-instances-execution-environment.html).
	initLimit        = 10 * time.Second
	managedInitLimit = 130 * time.Second

	// Lambda sends SIGKILL about this long after SIGTERM when no external
	// extension is registered.
	shutdownGrace = 500 * time.Millisecond
)

// Config says what to run and how. The zero value lacks a Command.
type Config struct {
	// Command is the bootstrap and its arguments; required. The working
	// directory of the environments is that of the calling process.
	Command []string

	// Env holds "K=V" pairs added to the calling process's environment and to
	// the variables Lambda sets; of two with the same name the one given here
	// wins, except AWS_LAMBDA_RUNTIME_API. Nil adds nothing. When neither has
	// AWS credentials (an access key, AWS_PROFILE, ...), dummy ones are added.
	Env []string

	// Fresh returns further "K=V" pairs, which win over those of Env. It is called
	// before each start of a process, by several goroutines at once, so that
	// credentials that expire can be replaced as Lambda does. Its error is that
	// of a failed initialisation. Nil adds nothing.
	Fresh func() ([]string, error)

	// Environments is the number of copies; zero means 1.
	Environments int

	// Concurrency is how many invocations each environment handles at once; zero
	// means 1, which is classic Lambda. More than 1 stands for Lambda Managed
	// Instances: the environments are never frozen, and an invocation that
	// passes its deadline is reported as timed out while the process goes on.
	Concurrency int

	// Timeout is the function's timeout; zero means 3 s, as in Lambda.
	Timeout time.Duration

	// Function is the function's name; empty means the base name of Command[0].
	Function string

	// Logs receives each line an environment prints to stdout or stderr, without
	// the line break. Calls never overlap. Nil writes the lines to the standard
	// error of the calling process, each with its environment's number in front.
	Logs func(env int, line string)

	// Observe receives the life cycle of environments and invocations. Calls are
	// made in the order of the events and never overlap; they may use the
	// platform, but not Close it. Nil discards the events.
	Observe func(Event)
}

// Platform is a set of running execution environments. Start makes one; the
// zero value is not usable. Its methods may be called from several goroutines.
type Platform struct {
	cfg      Config
	timeline *timeline
	logs     *logs
	// Fields rather than constants so that tests need not wait that long.
	initLimit    time.Duration
	firstBackoff time.Duration

	closing chan struct{}
	wg      sync.WaitGroup

	mu     sync.Mutex // guards what follows and the state of all environments
	envs   []*environment
	queue  []*call // invocations no environment has taken yet, oldest first
	closed bool
}

// Start starts all the environments and waits until each has asked for its
// first invocation. When one of them ends or reports an error before that, or
// does not ask within Lambda's limit for the Init phase (10 s; 130 s with
// Concurrency above 1), Start closes the platform and returns an error that
// includes the last lines the environment printed. The context bounds the start
// only; end the platform with Close.
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
	p := &Platform{
		cfg:          cfg,
		timeline:     newTimeline(cfg.Observe),
		logs:         newLogs(cfg.Logs),
		initLimit:    initLimit,
		firstBackoff: 100 * time.Millisecond,
		closing:      make(chan struct{}),
	}
	if p.managed() {
		p.initLimit = max(managedInitLimit, cfg.Timeout)
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
		return errors.New("locallambda: Config.Command is empty")
	}
	if cfg.Environments < 0 || cfg.Concurrency < 0 || cfg.Timeout < 0 {
		return errors.New("locallambda: Config has a negative Environments, Concurrency or Timeout")
	}
	for _, pair := range cfg.Env {
		if strings.Index(pair, "=") < 1 {
			return fmt.Errorf("locallambda: Config.Env has %q, which is not of the form K=V", pair)
		}
	}
	cfg.Environments = max(cfg.Environments, 1)
	cfg.Concurrency = max(cfg.Concurrency, 1)
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Function == "" {
		cfg.Function = filepath.Base(cfg.Command[0])
	}
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

// managed reports whether the environments are those of a Lambda Managed
// Instance.
func (p *Platform) managed() bool { return p.cfg.Concurrency > 1 }

// Kill sends SIGKILL to an environment's process group now, frozen or not. What
// it was handling ends as Crashed, and a new process takes its place. It is an
// error to name an environment that does not exist, or one that has no process
// at the moment because it is being restarted.
func (p *Platform) Kill(env int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if env < 1 || env > len(p.envs) {
		return p.noSuchEnvironment(env)
	}
	sb := p.envs[env-1].sandbox
	if sb == nil {
		return fmt.Errorf("locallambda: environment %d has no process at the moment", env)
	}
	sb.kill()
	return nil
}

func (p *Platform) noSuchEnvironment(env int) error {
	return fmt.Errorf("locallambda: there is no environment %d: they are numbered 1 to %d", env, len(p.envs))
}

// Close ends all environments, with SIGTERM and half a second later SIGKILL,
// and returns when their processes are gone, their listeners closed and all
// events delivered. Invocations under way return ErrClosed. Closing again does
// nothing; the error is always nil.
func (p *Platform) Close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
		for _, c := range p.queue {
			p.abandon(c, ErrClosed)
		}
		p.queue = nil
		p.eachSandbox((*sandbox).terminate)
	}
	p.mu.Unlock()

	grace := time.AfterFunc(shutdownGrace, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.eachSandbox((*sandbox).kill)
	})
	p.wg.Wait()
	grace.Stop()
	p.timeline.close()
	return nil
}

// eachSandbox calls f for every environment's current process. The caller
// holds p.mu.
func (p *Platform) eachSandbox(f func(*sandbox)) {
	for _, env := range p.envs {
		if env.sandbox != nil {
			f(env.sandbox)
		}
	}
}
