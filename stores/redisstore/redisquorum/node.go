package redisquorum

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/server"
)

const (
	// connectTimeout is how long a node of a quorum may take to be connected.
	// Package lock gives a whole step a second.
	connectTimeout = time.Second
	// patience is how long a client may take to notice that its context has ended.
	patience = 50 * time.Millisecond
)

var (
	errHangs        = errors.New("the client hangs, although its deadline has passed")
	errNotConnected = errors.New("no connection yet")
)

// node is one of the servers.
type node struct {
	*server.Server
	idle chan struct{} // has one for each connection that is open and not in use; nil: not known
}

func newNode(client redis.Scripter) (*node, error) {
	s, err := server.New(client)
	if err != nil {
		return nil, err
	}
	n := &node{Server: s}
	if c, ok := client.(*redis.Client); ok {
		n.idle = make(chan struct{}, c.Options().PoolSize)
	}
	return n, nil
}

// exchange sends a request to a node of a quorum. The node has the timeout from
// when it is connected. A client may hang although its context has ended, so
// exchange waits only a little longer than that; what such a client still sends
// is a late copy like any other.
func (n *node) exchange(ctx context.Context, timeout time.Duration, request func(context.Context) answer) answer {
	if err := n.connect(ctx); err != nil {
		return answer{Err: err}
	}
	c := clock.From(ctx)
	ctx, cancel := c.WithDeadlineCause(ctx, c.Now().Add(timeout), nil)
	defer cancel()
	answered := make(chan answer, 1) // nobody may be left to receive
	go func() { answered <- n.keep(request(ctx)) }()
	select {
	case a := <-answered:
		return a
	case <-ctx.Done():
	}
	hangs := make(chan struct{})
	defer c.AfterFunc(patience, func() { close(hangs) }).Stop()
	select {
	case a := <-answered:
		return a
	case <-hangs:
		return answer{Err: &driver.Error{Store: n.String(), Err: errHangs}}
	}
}

// connect waits until there is an open connection for one request. Opening one
// takes several round trips, so it goes on in the background if ctx ends first:
// otherwise each request would begin anew, and a distant server would never be
// connected.
func (n *node) connect(ctx context.Context) error {
	if n.idle == nil { // the client's connections are not known
		return nil
	}
	select {
	case <-n.idle:
		return nil
	default:
	}
	opened := make(chan error, 1) // nobody may be left to receive
	go func() {
		ctx, cancel := outlive(ctx)
		defer cancel()
		opened <- n.keep(answer{Err: n.Check(ctx)}).Err
	}()
	for {
		select {
		case <-n.idle:
			return nil
		case err := <-opened:
			var e *driver.Error
			if errors.As(err, &e) && !e.Answered {
				e.Unapplied = true // the request was not sent
				return e
			}
			opened = nil
		case <-ctx.Done():
			return &driver.Error{Store: n.String(), Unapplied: true, Err: errNotConnected}
		}
	}
}

// outlive returns a context for what must go on when ctx ends, but not for
// ever.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	c := clock.From(ctx)
	return c.WithDeadlineCause(context.WithoutCancel(ctx), c.Now().Add(connectTimeout), nil)
}

// keep returns a, and remembers that its connection is open and idle. The
// client closes the connection of a request that has no answer.
func (n *node) keep(a answer) answer {
	var e *driver.Error
	if !errors.As(a.Err, &e) || e.Answered {
		select {
		case n.idle <- struct{}{}:
		default: // as many as the client keeps
		}
	}
	return a
}
